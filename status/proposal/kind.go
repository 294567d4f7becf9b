package proposal

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/source/transport"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/forge"
)

// Kind decides what one kind of pull request proposes, and how it is described. Machine does the
// rest. E is the kind's entry, a struct that embeds State.
type Kind[E any] interface {
	// Entries returns the entries that are kept, and those that have to be proposed since. next is
	// the time when it has to be called again without news; zero for no such time.
	Entries(ctx context.Context, all []E, now Now) (out []E, next time.Time, err error)
	// Want decides what should become of an entry.
	Want(ctx context.Context, e *E, now Now) (Want, error)
	// Owns reports whether weir may have made a branch for an entry without a recorded pull
	// request.
	Owns(e *E, branch string) bool
	// Made reads the trailers of a commit that has weir's author but no record. ours says that weir
	// made it for this entry, and can continue from there.
	Made(e *E, trailers []snapshot.Trailer) (m Made, ours bool)
	// Ended is called once an entry is in a phase without a pull request. keep false removes the
	// entry.
	Ended(e *E) (keep bool)
	Texts(e *E) Texts
	// Event returns the event to send about an entry. An event without a kind is not sent.
	Event(e *E, what What, text string) events.Event
	// Finish is called at the end of each turn with all entries.
	Finish(ctx context.Context, all []E)
}

// Want describes what should become of an entry. The zero value leaves it as it is.
type Want struct {
	// Gone explains why the proposal is no longer needed. An open pull request is closed then.
	Gone string
	// Branches are the exact names that the branch may have. weir searches the forge for their pull
	// requests before it opens one.
	Branches []string
	// Print identifies the content to write. An open pull request with another print is updated.
	Print string
	// Fixed describes the open pull request if it is never updated: it stays as it was opened.
	Fixed string
	// Draft makes the change. It is called only if something is pushed.
	Draft func(ctx context.Context) (Draft, error)
}

// Draft is a pull request to open or update.
type Draft struct {
	Branch, Title, Body string
	// Commit needs no author: Machine adds weir's.
	Commit source.Commit
	// Paths are the files that it changes. Print is that of Want, if it is known only now.
	Paths []string
	Print string
	// Opened and Updated say what the pull request does, after its number. Comment is written on
	// an updated one; empty for no comment.
	Opened, Updated, Comment string
	// Pushed is called once the branch has the commit. It may be nil.
	Pushed func()
}

// Made is the content of the trailers of a commit of weir's: the print, and the commit below it.
type Made struct{ Print, On string }

// Texts are the words of a kind. Merged, Closed and Left follow the number of the pull request.
// Unneeded, Refused and ByHand come before a reason; an empty one is not reported.
type Texts struct {
	Merged, Closed, Left, LeftComment string
	Unneeded, Refused, ByHand         string
}

// What describes what happened to a proposal. The kinds of events end with it.
type What string

// What happens.
const (
	WasOpened  What = "opened"
	WasUpdated What = "updated"
	WasClosed  What = "closed"
	WasLeft    What = "left"
	WasRefused What = "refused"
)

// Refusal explains why weir cannot propose something, and what to do by hand.
type Refusal struct{ Text string }

func (e *Refusal) Error() string { return e.Text }

// Refuse returns a *Refusal.
func Refuse(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...)} }

// NotNeeded is an error of a draft: the proposal is no longer needed.
type NotNeeded struct{ Why string }

func (e *NotNeeded) Error() string { return e.Why }

// Now is the state of the source in a turn.
type Now struct {
	Time time.Time
	// Head is the commit that is followed, Base the branch that it is on.
	Head, Base string
}

// Forge holds pull requests. Its token may push.
type Forge interface {
	Pulls(ctx context.Context, after forge.Cursor) (list []forge.PullRequest, next forge.Cursor, unchanged bool, err error)
	Pull(ctx context.Context, number int64) (forge.PullRequest, error)
	PullOf(ctx context.Context, base, head string) (p forge.PullRequest, found bool, err error)
	OpenPull(ctx context.Context, p forge.Proposal) (forge.PullRequest, error)
	EditPull(ctx context.Context, number int64, title, body string) error
	ClosePull(ctx context.Context, number int64) error
	CreateComment(ctx context.Context, number int64, body string) (forge.Comment, error)
}

// Git is the source's mirror.
type Git interface {
	By(ctx context.Context, revision string) (author, committer string, err error)
	Changed(ctx context.Context, from, to string) ([]string, error)
	Pull(ctx context.Context, p source.PullRef) (source.Merge, error)
	Forget(head string) error
	Branch(ctx context.Context, name string, c source.Commit) (transport.Branch, error)
}

// Pusher creates branches, and advances them to descendants.
type Pusher interface {
	At(ctx context.Context, branch string) (string, error)
	Make(ctx context.Context, b transport.Branch) error
}

// Options configure a Machine.
type Options struct {
	// Record is the name of the records, Source the source that they are about.
	Record, Source  string
	PageURL         string
	Author, Address string
	// Every is the least time between two changes of one pull request.
	Every  time.Duration
	Forge  Forge
	Git    Git
	Pusher Pusher
	Redact func(string) string
	Event  func(events.Event)
	Logger *slog.Logger
}

// Words puts texts of others into texts of weir's.
func (o *Options) Words() Words { return Words{Redact: o.Redact} }
