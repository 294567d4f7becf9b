// Package kinds lists the kinds of events, with the attention that each deserves. Its tables map
// steps, holds and diagnostics to events: add a line for a new one. Without a line, a step is
// announced by its resource and verb, a hold as step-held, and a diagnostic as part of its target's
// fault. The configuration reads its list of kinds from here.
package kinds
