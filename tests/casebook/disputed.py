"""Cases that pardbg does not get right yet, and why. Each entry is a debt; the tests say so when one is paid."""

NOT_YET = {
    "C20/rank-zero-says-nothing": "a victim's time-out alone gives no verdict, where it should say what is missing",
    "C38/only-consequences": "consequences alone give no verdict, where it should say what is missing",
    "C40/only-the-timeout": "a victim's time-out alone gives no verdict, where it should say what is missing",
    "C40/raised-before-the-timeout": "an exception without a time and a later time-out are not always brought together",
    "C71/fatal-links": "ranks that were aborted while their GPUs' links failed fatally are not called dead",
}
