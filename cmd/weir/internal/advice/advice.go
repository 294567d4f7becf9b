// Package advice contains the errors that a user can do something about: a fault, with a hint that
// says what to do. Commands, and what they share, return them; weir prints the hint on a line of
// its own below the error. A hint is never part of the error's text, which also goes where no user
// acts on it: to logs, and into other errors.
//
// Package diag is for findings about files. A finding has a code, a severity and a position, and no
// use as an error; an error of a command has none of these.
package advice

import (
	"fmt"
	"strings"

	"github.com/weir-gitops/weir/render/nearest"
)

// Error is an error, and what to do about it.
type Error struct {
	err error
	// Hint says what to do.
	Hint string
}

func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.err }

// Hinted adds what to do to an error.
func Hinted(err error, hint string) error { return &Error{err: err, Hint: hint} }

// Usage is an error in how a command was called.
func Usage(hint, format string, args ...any) error {
	return Hinted(fmt.Errorf(format, args...), hint)
}

// DidYouMean returns a hint with the most likely meaning of a misspelt word, followed by rest.
func DidYouMean(word string, known []string, rest string) string {
	if near := nearest.Word(word, known); near != "" {
		return fmt.Sprintf("did you mean %q? %s", near, rest)
	}
	return rest
}

// DidYouMeanPool is DidYouMean for a pool's name, with or without its namespace.
func DidYouMeanPool(name string, pools []string, rest string) string {
	if !strings.Contains(name, "/") {
		for i, p := range pools {
			if _, short, ok := strings.Cut(p, "/"); ok {
				pools = append(pools[:i:i], append([]string{short}, pools[i+1:]...)...)
			}
		}
	}
	return DidYouMean(name, pools, rest)
}

// Several lists names, of many only the first.
func Several(names []string) string {
	const most = 5
	if len(names) <= most+1 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
