// Package report reads the reports of passes: the phase of a target and its pools, a fault in a
// sentence, how many instances a step replaces at once. Every sink uses it, so that page, statuses,
// events and metrics say the same of one report.
//
// Redact makes a copy of a report, or of a pull request, without secrets; a sink keeps such copies
// only. Pull holds what weir knows of a pull request. Links are the addresses of commits and files
// on a forge.
//
// Everything here is a value or a function of values: nothing waits, and nothing is kept.
package report
