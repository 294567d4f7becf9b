// Package wording puts plans into words, the same on the command line, in comments
// and in job summaries. Texts of others come out without control characters, and in
// Markdown without anything that a forge acts on.
package wording

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/visible"
)

// Clean makes text from outside fit for one line: valid UTF-8 of characters that a
// reader sees.
func Clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.ContainsFunc(s, unicode.IsSpace) {
		s = strings.Map(func(r rune) rune {
			if unicode.IsSpace(r) {
				return ' '
			}
			return r
		}, s)
	}
	return visible.Text(s)
}

// Count is a number with its noun: "1 pool", "2 pools".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Short is a commit's hash as people read it.
func Short(sha string) string { return sha[:min(7, len(sha))] }

// Mark is the sign in front of a step.
func Mark(v step.Verb) string {
	switch v {
	case step.Create:
		return "+"
	case step.Delete, step.PruneVersion:
		return "-"
	case step.Replace, step.Rollout:
		return "±"
	default:
		return "~"
	}
}

// Replaces reports whether other instances replace those that a disruptive step
// ends. A smaller size replaces none; other updates of a group end them little by
// little, and how many is not known.
func Replaces(s step.Step) bool {
	return s.Verb == step.Rollout || s.Verb == step.Replace || s.Verb == step.Update && s.Instances == 0
}

// ReplacesNone reports whether a rollout is known to replace no instance.
func ReplacesNone(s step.Step) bool {
	return s.Verb == step.Rollout && !s.Disruptive && s.Instances == 0 && !s.Stops && !s.About().EndsRefresh()
}

// Ends describes what happens to the instances that a step disrupts, empty if it disrupts none.
func Ends(s step.Step) string {
	word, what := "ends ", "instances"
	if Replaces(s) {
		word = "replaces "
	}
	if s.Instances > 0 {
		what = Count(s.Instances, "instance")
	}
	if !s.Disruptive {
		return ""
	}
	return word + what
}

// Held says what holds a step, and where known until when or for what.
func Held(s step.Step) string {
	if s.HeldReason == "" {
		return Clean(string(s.Held))
	}
	return Clean(string(s.Held) + ", " + s.HeldReason)
}

// Distinct leaves out changes of a step that read like an earlier one: a tag is set
// on instances and on volumes.
func Distinct(s step.Step) []step.Change {
	seen := map[[2]string]bool{}
	var out []step.Change
	for _, c := range s.Changes {
		if key := [2]string{c.Field, Transition(s.Verb, c)}; !seen[key] {
			seen[key] = true
			out = append(out, c)
		}
	}
	return out
}

// FileLine is file:line of a position: its column says nothing to people.
func FileLine(pos diag.Position) string {
	pos.Column = 0
	return pos.String()
}

// Transition describes a change: from → to, or the value alone where something is
// made. Long values are shortened, those with an ARN are not.
func Transition(verb step.Verb, c step.Change) string { return transition(verb, c, Value) }

// Whole is Transition with nothing shortened.
func Whole(verb step.Verb, c step.Change) string { return transition(verb, c, whole) }

func transition(verb step.Verb, c step.Change, value func(any) string) string {
	if c.Words != "" {
		words := " (" + Shorten(Clean(c.Words), 200) + ")"
		c.Words = ""
		return transition(verb, c, value) + words
	}
	switch {
	case c.From == nil && verb == step.Create:
		return value(c.To)
	case c.From == nil:
		return "(none) → " + value(c.To)
	case c.To == nil && verb == step.Delete:
		return value(c.From)
	case c.To == nil:
		return value(c.From) + " → (none)"
	default:
		return value(c.From) + " → " + value(c.To)
	}
}

// Value is a JSON value on one line, of at most 100 characters where it holds no ARN:
// plain texts without quotes.
func Value(v any) string { return Shorten(whole(v), 100) }

// longestWhole bounds a value that is shown whole, in characters: fifty ARNs of target
// groups, the most that a group takes, have less.
const longestWhole = 8000

// Shorten cuts a text to a number of characters, but none with an ARN in it: who
// approves a role has to see which one.
func Shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	if HasARN(text) {
		most = longestWhole
	}
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}

// HasARN reports whether a text holds an ARN, of any partition.
func HasARN(text string) bool { return strings.Contains(text, "arn:aws") }

// whole is Value of any length.
func whole(v any) string {
	text, isText := v.(string)
	if !isText || text == "" || strings.ContainsFunc(text, func(r rune) bool { return visible.Hidden(r) || unicode.IsSpace(r) && r != ' ' || r == '"' }) {
		b, err := json.Marshal(v)
		if err != nil {
			return strconv.Quote(fmt.Sprint(v))
		}
		text = Clean(string(b))
	}
	return text
}
