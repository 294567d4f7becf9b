package step

// Milestone is an event of a pass that is no step.
type Milestone struct {
	// Kind is stable, in kebab case, such as join-tokens-renewed.
	Kind string
	// Pool is "namespace/name", empty if the event concerns the target.
	Pool string
	// Reason explains the event in a few words. Text describes it in a sentence.
	Reason, Text string
	// Facts contains further facts, without secrets.
	Facts map[string]string
}
