// Package advice contains errors that a user can fix: an error with a hint that describes the remedy.
// Commands and the packages below them return these errors. weir prints the hint on its own line below the
// error. A hint is never part of the error's text, because that is also used where no user can act on it:
// in logs, and in other errors.
//
// Package diag is for findings about files. A finding has a code, a severity and a position, and is not an
// error value. An error of a command has none of these.
package advice

import (
	"fmt"
	"strings"

	"github.com/weir-gitops/weir/render/nearest"
)

// Error is an error with its remedy.
type Error struct {
	err error
	// Hint describes the remedy.
	Hint string
}

func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.err }

// Hinted adds a remedy to an error.
func Hinted(err error, hint string) error { return &Error{err: err, Hint: hint} }

// Usage returns an error about the command line.
func Usage(hint, format string, args ...any) error {
	return Hinted(fmt.Errorf(format, args...), hint)
}

// DidYouMean returns a hint with the most likely correction of a misspelt word, followed by rest.
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

// JoinNames joins names with commas. Of more than six names, it lists the first five and the number of the
// others.
func JoinNames(names []string) string {
	const most = 5
	if len(names) <= most+1 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
