// Package kinds lists the kinds of events, with how much attention each deserves. Its
// tables say which event something becomes, each line for a new step, a new hold or a
// new diagnostic. Without a line, a step is announced by its resource and verb, a hold
// as step-held, and a diagnostic as part of its target's fault. The configuration
// takes its list of kinds from here.
package kinds
