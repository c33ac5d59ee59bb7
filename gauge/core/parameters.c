/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parameters.h"

static void reply_limits(struct reply *reply, const struct parameter *parameter)
{
	uint32_t limit;

	reply_text(reply, TEXT(" must be a number from "));
	text_copy(&limit, &parameter->min, sizeof(limit));
	reply_unsigned(reply, limit);
	reply_text(reply, TEXT(" to "));
	text_copy(&limit, &parameter->max, sizeof(limit));
	reply_unsigned(reply, limit);
}

static void fail_parameter(struct reply *reply, enum parse_error error, const struct parameter *parameter)
{
	if (error == PARSE_UNKNOWN_KEY) {
		reply_error(reply, TEXT("unknown parameter; see help"));
		return;
	}
	reply_text(reply, TEXT("error "));
	reply_text(reply, parameter->key);
	if (error == PARSE_MISSING)
		reply_text(reply, TEXT(" is missing"));
	else if (error == PARSE_TWICE)
		reply_text(reply, TEXT(" is given twice"));
	else
		reply_limits(reply, parameter);
	reply_line_end(reply);
}

bool command_parameters(struct reply *reply, const char *text, const struct parameter *table, uint8_t count,
			uint8_t required, uint32_t *values)
{
	uint8_t at;
	enum parse_error error = line_parameters(text, table, count, required, values, &at);

	if (error != PARSE_OK)
		fail_parameter(reply, error, &table[at]);
	return error == PARSE_OK;
}
