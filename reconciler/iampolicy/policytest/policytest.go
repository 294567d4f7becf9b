// Package policytest decides requests to the emulator as IAM would by a policy: for tests that
// hold what weir calls against the policies that it prints.
package policytest

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/iampolicy"
)

// Asked is one question to IAM: may this be done?
type Asked struct {
	Action, Resource string
	// Context holds the condition keys that the call has.
	Context map[string]string
	Write   bool
	// Behalf says that weir does not call it: AWS asks because of another call.
	Behalf bool
}

// Takes reports whether the call changes something that there is: a launch that is only
// tried does not.
func (a Asked) Takes() bool { return a.Write && a.Action != "ec2:RunInstances" }

// Allows decides as IAM does where policies only allow: one statement that names
// the action, the resource and conditions that all hold.
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

// like matches with * for any text; a text with a * stands for one of its kind,
// as a resource that does not exist yet.
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
