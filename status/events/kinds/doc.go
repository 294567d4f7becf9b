// Package kinds lists the kinds of events, with how much attention each deserves. Its
// tables say which event something becomes: what a new step, a new hold or a new
// diagnostic is told as is a line in them. Without one, a step is told as its resource
// and verb, a hold as step-held, and a diagnostic as part of what is wrong with its
// target. The configuration takes its list of kinds from here.
package kinds
