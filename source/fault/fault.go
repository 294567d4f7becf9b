// Package fault says why a source returns no snapshot. Each cause has a Reason, which is stable and
// which metrics and the API show, and a text that repeats nothing of the other side raw. Packages
// below source return an Error or an ObjectError; source adds its name and what to do, and returns
// an UnavailableError.
//
// An object that cannot be read is never an fs.ErrNotExist: a missing pack must not look like a
// missing file, because a missing file means that Git wants less. Nor does a shortage of file
// descriptors or memory count as damage: it is temporary, and nothing is made again for it.
package fault

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"unicode"

	"github.com/go-git/go-git/v5/plumbing"
)

// Reason says why a source gives no snapshot.
type Reason string

// Reasons. They are stable: metrics and the API show them.
const (
	Unreachable     Reason = "unreachable"
	AuthFailed      Reason = "auth-failed"
	NotFound        Reason = "not-found"
	MissingRef      Reason = "missing-ref"
	EmptyRepository Reason = "empty-repository"
	Corrupt         Reason = "corrupt"
	Timeout         Reason = "timeout"
	RefusedURL      Reason = "refused-url"
	Unsupported     Reason = "unsupported"
	// UntrustedHost says that an SSH server's key is not known, or another one.
	UntrustedHost Reason = "untrusted-host"
	// Unverified says that the revision is not signed as the configuration asks.
	Unverified Reason = "unverified"
	// Storage says that the mirror could not be written.
	Storage Reason = "storage"
	// Exhausted says that the process or the machine had no file descriptors or no
	// memory left, so that nothing is known of the object or file.
	Exhausted Reason = "exhausted"
)

// UnavailableError says that a source gives no snapshot now, why, and what to
// do. It holds no credentials.
type UnavailableError struct {
	Source string
	Reason Reason
	// Revision is the commit that is refused, where the reason is Unverified or
	// the fault is otherwise in one commit; else empty.
	Revision string
	Err      error

	// Wasted counts the bytes that were received but not used.
	Wasted int64
}

// Error ends with what to do about it.
func (e *UnavailableError) Error() string {
	text := fmt.Sprintf("read source %s: %s: %v", e.Source, e.Reason, e.Err)
	if a := e.Reason.advice(); a != "" {
		text += "; " + a
	}
	return text
}

// Unwrap gives the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

func (r Reason) advice() string {
	switch r {
	case Unreachable:
		return "check the url, the network and the proxy; it is tried again at each interval"
	case AuthFailed:
		return "check the source's auth, and that it may read this repository"
	case NotFound:
		return "check the url; for a private repository, forges answer this too when credentials are missing"
	case EmptyRepository:
		return "push a first commit"
	case Corrupt:
		return "a mirror is made again at the next attempt; a repository on this machine needs `git fsck`"
	case Timeout:
		return "it is tried again at each interval"
	case Unverified:
		return "what was applied last stays; sign the commit or tag with an allowed key and push it, or add the signer to verify"
	case Storage:
		return "check space and permissions of the state directory"
	case Exhausted:
		return "raise the limit of open files (LimitNOFILE of the service, ulimit -n); nothing was changed, and it is tried again at each interval"
	default:
		return ""
	}
}

// Error is a cause with its reason, before the source's name is known.
type Error struct {
	Reason   Reason
	Revision string
	Text     string
	Err      error // kept for errors.Is; its text is not shown
}

func (f *Error) Error() string { return f.Text }
func (f *Error) Unwrap() error { return f.Err }

func New(r Reason, format string, args ...any) *Error {
	return &Error{Reason: r, Text: fmt.Sprintf(format, args...)}
}

// Unread is the fault of an object that could not be read: its damage, unless the
// error says that the machine had no means to read it.
func Unread(err error, format string, args ...any) *Error {
	f := New(Corrupt, format+": %v", append(args, err)...)
	if Scarce(err) {
		f.Reason = Exhausted
	}
	return f
}

// Scarce reports whether err will pass by itself and says nothing of a file.
func Scarce(err error) bool {
	for _, scarce := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.ENOBUFS} {
		if errors.Is(err, scarce) {
			return true
		}
	}
	return false
}

// Object is the error of an object that could not be read because of err.
func Object(h plumbing.Hash, text string, err error) error {
	if Scarce(err) {
		return Unread(err, "read object %s", h)
	}
	return &ObjectError{Hash: h, Text: fmt.Sprintf("%s: %v", text, err)}
}

// Unavailable gives err the form that leaves the package.
func Unavailable(source string, err error) *UnavailableError {
	u := &UnavailableError{Source: source, Reason: ReasonOf(err), Err: err}
	var f *Error
	if errors.As(err, &f) {
		u.Revision = f.Revision
	}
	return u
}

// ReasonOf reads the reason off err. An error that carries none comes from writing
// files, or from being unable to.
func ReasonOf(err error) Reason {
	var f *Error
	var oe *ObjectError
	switch {
	case errors.As(err, &f):
		return f.Reason
	case errors.As(err, &oe):
		return Corrupt
	case Scarce(err):
		return Exhausted
	default:
		return Storage
	}
}

// ObjectError says that an object could not be read. It never wraps an error of
// the file system, because a missing pack must not look like a missing path.
type ObjectError struct {
	Hash plumbing.Hash
	Text string
	// Missing and WrongType distinguish an absent object, and an intact one of another type, from a
	// damaged one.
	Missing, WrongType bool
	// Malformed says that it is whole, and no object that Git would make.
	Malformed bool
}

func (e *ObjectError) Error() string {
	return fmt.Sprintf("read object %s: %s", e.Hash, e.Text)
}

// Plain makes text from outside fit for a log line: printable, one line, short.
func Plain(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 300 {
		s = string(r[:300]) + "…"
	}
	return s
}
