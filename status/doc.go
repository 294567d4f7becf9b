// Package status tells people what a pass did: on a page, in an API, in metrics
// and as commit statuses on the forge that the change came from.
//
// The one flow through it: the reconciler hands each finished *plan.Report to a
// Sink. Sinks fans it out to three:
//
//	Board    keeps the current state of sources, targets and pools, with the
//	         last runs and events; its Handler serves the page, /api/v1,
//	         /healthz and /readyz from copies of it, and tells pages that
//	         are open what changed
//	Metrics  counts passes, steps and pools on a Prometheus registerer
//	Commits  decides which statuses the commit gets, writes them to its journal
//	         and queues them; one goroutine for each forge posts what is queued
//
// Only Commits needs more than reports: Begin says that a revision was seen and
// which targets it touches, so that "pending" appears before the first pass ends.
//
// Nothing here waits for a forge or a browser while the reconciler reports:
// Report methods copy, decide and return. Every text passes the redaction
// function that the package is given before it is kept.
package status
