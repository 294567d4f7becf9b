// Package report reads the reports of passes: the phase of a target and its pools, a fault in a
// sentence, how many instances a step replaces at once. Every sink uses it, so that page, statuses,
// events and metrics say the same of one report.
//
// Redact copies a report, or a pull request, without secrets; sinks keep only such copies. Pull is the
// report of a pull request. Links builds the addresses of commits and files on a forge.
//
// The package contains only values and pure functions. Nothing in it waits or stores state.
package report
