// Package kinds lists the kinds of events with their levels. Its tables map steps, holds and diagnostics to
// kinds; add a row for a new one. Without a row, the kind of a step consists of its resource and verb, a
// hold is announced as step-held, and a diagnostic as part of its target's fault. The configuration
// validates kinds of events against this list.
package kinds
