/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --list-json: probes and their options for programs, from the tables that the command line is parsed with. */
#include "catalogue.h"

#include <stdio.h>

#include "json.h"
#include "registry.h"

static const char *const kind_names[] = {
	[OPTION_FLAG] = "flag",
	[OPTION_SET] = "flag",
	[OPTION_INTEGER] = "integer",
	[OPTION_DURATION] = "duration",
	[OPTION_CHOICE] = "choice",
	[OPTION_TEXT] = "text",
	[OPTION_CPUS] = "cpus",
};

static void add_choices(struct json *json, const char *const *choices)
{
	json_key(json, "choices");
	json_open(json, '[');
	for (; *choices; choices++)
		json_text(json, *choices);
	json_close(json, ']');
}

static void add_option(struct json *json, const struct option_spec *option)
{
	json_open(json, '{');
	json_member_text(json, "name", option->name);
	json_member_text(json, "kind", kind_names[option->kind]);
	json_member_text(json, "help", option->help);
	json_key(json, "acts");
	json_bool(json, option->acts);
	if (option->kind == OPTION_INTEGER || option->kind == OPTION_DURATION) {
		json_member_int(json, "low", option->low);
		json_member_int(json, "high", option->high);
	}
	if (option->choices)
		add_choices(json, option->choices);
	json_close(json, '}');
}

static void add_options(struct json *json, const struct option_spec *table)
{
	json_key(json, "options");
	json_open(json, '[');
	for (; table && table->name; table++)
		add_option(json, table);
	json_close(json, ']');
}

void catalogue_print(const struct option_spec *common)
{
	struct json json = {0};

	json_open(&json, '{');
	json_key(&json, "probes");
	json_open(&json, '[');
	for (const struct probe *const *probe = probes; *probe; probe++) {
		json_open(&json, '{');
		json_member_text(&json, "name", (*probe)->name);
		json_member_text(&json, "summary", (*probe)->summary);
		json_key(&json, "watches");
		json_bool(&json, (*probe)->watches);
		add_options(&json, (*probe)->options);
		json_close(&json, '}');
	}
	json_close(&json, ']');
	add_options(&json, common);
	json_close(&json, '}');
	json_newline(&json);
	fwrite(json.text, 1, json.used, stdout);
	json_free(&json);
}
