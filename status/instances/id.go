package instances

import (
	"fmt"
	"strings"
)

// The numbers of hexadecimal digits of an instance id. Old instances have short ids.
const (
	shortDigits = 8
	wholeDigits = 17
)

// ID is an instance id, or the beginning of one.
type ID struct {
	Text string
	// Whole reports whether no longer id can begin with the text.
	Whole bool
}

// Hint describes a valid id.
const Hint = "write it like i-0123456789abcdef0, or its first part: i- and at least 8 hexadecimal digits"

// ParseID parses an instance id, or the beginning of one with at least 8 digits.
func ParseID(text string) (ID, error) {
	id := strings.ToLower(strings.TrimSpace(text))
	digits, prefixed := strings.CutPrefix(id, "i-")
	if !prefixed || len(digits) < shortDigits || len(digits) > wholeDigits || strings.Trim(digits, "0123456789abcdef") != "" {
		return ID{}, fmt.Errorf("%q is not an instance id", text)
	}
	return ID{Text: id, Whole: len(digits) == wholeDigits}, nil
}

// Unknown is the message for an instance that no pool has.
func (id ID) Unknown() string {
	return "weir finds no instance " + id.Text + " in its pools: it may be terminated, be in a warm pool, or belong to another weir or to a pool that is no longer in Git"
}

// Ambiguous is the message if several instances match.
func (id ID) Ambiguous(matches []string) string {
	const named = 10
	list := strings.Join(matches[:min(len(matches), named)], ", ")
	if len(matches) > named {
		list += fmt.Sprintf(" and %d more", len(matches)-named)
	}
	return fmt.Sprintf("the ids of %d instances begin with %s: %s", len(matches), id.Text, list)
}

// Matches reports whether an instance has the id, or an id that begins with it.
func (id ID) Matches(instance string) bool { return strings.HasPrefix(instance, id.Text) }
