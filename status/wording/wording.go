// Package wording describes plans, with the same words on the command line, in comments and in job
// summaries. It removes control characters from text from outside, and in Markdown everything that a forge
// acts on.
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

// Clean makes text from outside suitable for one line: valid UTF-8 with only visible characters.
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

// Count formats a number with its noun: "1 pool", "2 pools".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Short returns the abbreviated hash of a commit.
func Short(sha string) string { return sha[:min(7, len(sha))] }

// Mark returns the symbol in front of a step.
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

// Replaces reports whether the instances that a disruptive step terminates are replaced by others. A
// reduced size replaces none. Other updates of a group terminate instances gradually, and their number is
// unknown.
func Replaces(s step.Step) bool {
	return s.Verb == step.Rollout || s.Verb == step.Replace || s.Verb == step.Update && s.Instances == 0
}

// ReplacesNone reports whether a rollout certainly replaces no instance.
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

// Held describes the hold of a step and, if known, until when or for what it waits.
func Held(s step.Step) string {
	if s.HeldReason == "" {
		return Clean(string(s.Held))
	}
	return Clean(string(s.Held) + ", " + s.HeldReason)
}

// Distinct returns the changes of a step without duplicates: the same tag can be set on instances and on
// volumes.
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

// FileLine formats a position as file:line, without the column, which readers do not need.
func FileLine(pos diag.Position) string {
	pos.Column = 0
	return pos.String()
}

// Transition describes a change as from → to, or as the value alone if the step creates something. It
// shortens long values, except values with an ARN.
func Transition(verb step.Verb, c step.Change) string { return transition(verb, c, Value) }

// Whole is Transition without shortening.
func Whole(verb step.Verb, c step.Change) string { return transition(verb, c, whole) }

// transition is Transition with a function that writes a value.
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

// Value formats a JSON value on one line; strings have no quotes. The result has at most 100 characters,
// or longestWhole if it contains an ARN.
func Value(v any) string { return Shorten(whole(v), 100) }

// longestWhole is the maximum length in characters of a value with an ARN. The ARNs of fifty target groups, the
// maximum of a group, are shorter.
const longestWhole = 8000

// Shorten cuts a text to a number of characters. A text with an ARN may have longestWhole characters, because a
// user who approves a role must see its full name.
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

// HasARN reports whether a text contains an ARN, of any partition.
func HasARN(text string) bool { return strings.Contains(text, "arn:aws") }

// whole is Value without a maximum length.
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
