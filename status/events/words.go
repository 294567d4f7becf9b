package events

import (
	"strings"
	"unicode"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/wording"
)

const (
	// namedFields is the maximum number of fields in the text of an event; its changes list more.
	namedFields = 3
	// plainValue is the maximum length of a value in a text, in bytes.
	plainValue = 60
)

// changeList formats the changes of steps for the end of a sentence: " (maxSize 7 → 20)".
func changeList(steps []step.Step) string {
	var all []string
	for _, s := range steps {
		for _, c := range wording.Distinct(s) {
			text := c.Field
			if standsWhole(c.From) && standsWhole(c.To) {
				text += " " + wording.Transition(s.Verb, c)
			}
			all = append(all, text)
		}
	}
	return inParentheses(all)
}

func inParentheses(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return " (" + firstOf(list) + ")"
}

func firstOf(list []string) string {
	if n := len(list) - namedFields; n > 0 {
		return strings.Join(list[:namedFields], ", ") + " and " + wording.Count(n, "more field")
	}
	return strings.Join(list, ", ")
}

// standsWhole reports whether a text contains a value complete and unchanged. Redaction would not recognize
// a secret that was truncated or rewritten here.
func standsWhole(v any) bool {
	switch v := v.(type) {
	case nil, bool, int, int32, int64, float64:
		return true
	case string:
		return len(v) <= plainValue && !strings.ContainsFunc(v, func(r rune) bool { return !unicode.IsPrint(r) || r == '"' })
	}
	return false
}

// movingWords describes what a step changes if it replaces no instance.
func movingWords(s step.Step) string {
	if s.Verb == step.Rollout && !wording.ReplacesNone(s) {
		return ""
	}
	var fields []string
	for _, c := range wording.Distinct(s) {
		fields = append(fields, c.Field)
	}
	if len(fields) == 0 {
		return "the update"
	}
	return "the change of " + firstOf(fields)
}

// foundMoving describes a change that was already in progress in AWS, based on its name in EKS.
func foundMoving(p plan.PoolStatus) string {
	if resourceOf(p) == step.ManagedNodegroup && p.Rollout != nil && p.Rollout.Message != "VersionUpdate" {
		return "the update"
	}
	return ""
}
