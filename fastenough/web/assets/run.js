// SPDX-License-Identifier: GPL-2.0-or-later
// The latency plot of one run.
"use strict";

async function drawRun() {
  const place = document.getElementById("distribution");
  try {
    const found = await figures("plot.json");
    if (CAN_DRAW_LINES) distributionLines(place, found);
  } catch (error) { cannot(place, error); }
  drawn();
}

addEventListener("redraw", drawRun);
drawRun();
