// Package policytest decides about requests to the emulator as IAM would with a policy. Tests use it to
// compare weir's calls with the policies that it prints.
package policytest

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/iampolicy"
)

// Asked is one permission check of IAM.
type Asked struct {
	Action, Resource string
	// Context contains the condition keys of the call.
	Context map[string]string
	Write   bool
	// Behalf says that weir does not make this call: AWS checks it because of another call.
	Behalf bool
}

// Takes reports whether the call changes an existing resource. A dry run of a launch does not.
func (a Asked) Takes() bool { return a.Write && a.Action != "ec2:RunInstances" }

// Allows decides like IAM for policies that only allow: one statement must match the action, the resource
// and all its conditions.
func Allows(t testing.TB, d iampolicy.Document, a Asked) bool {
	t.Helper()
	return slices.ContainsFunc(d.Statement, func(s iampolicy.Statement) bool {
		return slices.Contains(s.Action, a.Action) && slices.ContainsFunc(s.Resource, func(p string) bool { return like(p, a.Resource) }) && conditionMet(t, s.Condition, a.Context)
	})
}

func conditionMet(t testing.TB, c iampolicy.Condition, context map[string]string) bool {
	t.Helper()
	for operator, keys := range c {
		for key, values := range keys {
			have, present := context[key]
			plain, ifExists := strings.CutSuffix(operator, "IfExists")
			var ok bool
			switch plain {
			case "StringEquals":
				ok = present && slices.Contains(values, have)
			case "ArnLike":
				ok = present && slices.ContainsFunc(values, func(p string) bool { return like(p, have) })
			case "Null":
				ok = values[0] == strconv.FormatBool(!present)
			default:
				t.Errorf("the evaluator knows no operator %s", operator)
			}
			if !ok && (present || !ifExists) {
				return false
			}
		}
	}
	return true
}

// like matches a pattern in which * stands for any text. A text with a * stands for any resource of its
// kind, such as one that does not exist yet.
func like(pattern, text string) bool {
	if pattern == text || pattern == "*" {
		return true
	}
	head, tail, star := strings.Cut(pattern, "*")
	if !star {
		return false
	}
	rest, ok := strings.CutPrefix(text, head)
	for ok && rest != "" {
		if like(tail, rest) {
			return true
		}
		rest = rest[1:]
	}
	return ok && like(tail, rest)
}
