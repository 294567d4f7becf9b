package step

// Milestone is something worth telling that a pass did beside its steps.
type Milestone struct {
	// Kind is stable, in kebab case, such as join-tokens-renewed.
	Kind string
	// Pool is "namespace/name", empty where it concerns the target.
	Pool string
	// Reason says in a few words why, Text in a sentence what happened.
	Reason, Text string
	// Facts are further facts, without secrets.
	Facts map[string]string
}
