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

// Kind determines the content and the description of one kind of pull request. Machine does the rest. E is
// the type of an entry, a struct that embeds State.
type Kind[E any] interface {
	// Entries returns the entries to keep, and new entries. next is the time when it must be called again
	// if nothing happens before; zero for no such time.
	Entries(ctx context.Context, all []E, now Now) (out []E, next time.Time, err error)
	// Want returns the desired state of an entry.
	Want(ctx context.Context, e *E, now Now) (Want, error)
	// Owns reports whether a branch may belong to an entry that has no recorded pull request.
	Owns(e *E, branch string) bool
	// Made reads the trailers of a commit that has weir's author but no record. ours says that weir created
	// it for this entry, and can continue from it.
	Made(e *E, trailers []snapshot.Trailer) (m Made, ours bool)
	// Ended is called when an entry enters a phase without a pull request. If keep is false, the entry is
	// deleted.
	Ended(e *E) (keep bool)
	Texts(e *E) Texts
	// Event returns the event to send for an entry. An event without a kind is not sent.
	Event(e *E, what What, text string) events.Event
	// Finish is called at the end of each turn with all entries.
	Finish(ctx context.Context, all []E)
}

// Want is the desired state of an entry. The zero value leaves it unchanged.
type Want struct {
	// Gone is the reason why the proposal is no longer needed. An open pull request is then closed.
	Gone string
	// Branches lists the possible names of the branch. weir searches the forge for pull requests of these
	// branches before it opens one.
	Branches []string
	// Print is a fingerprint of the content to write. An open pull request with another fingerprint is
	// updated.
	Print string
	// Fixed describes the open pull request if it is never updated.
	Fixed string
	// Draft creates the change. It is called only if something must be pushed.
	Draft func(ctx context.Context) (Draft, error)
}

// Draft is a pull request to open or update.
type Draft struct {
	Branch, Title, Body string
	// Commit needs no author, because Machine sets weir as the author.
	Commit source.Commit
	// Paths lists the files that the draft changes. Print replaces Want.Print if that was not known before.
	Paths []string
	Print string
	// Opened and Updated describe the effect of the pull request, for use after its number. Comment is
	// written on a pull request after an update; empty for no comment.
	Opened, Updated, Comment string
	// Pushed is called when the branch has the commit. It may be nil.
	Pushed func()
}

// Made is the content of the trailers of one of weir's commits: the fingerprint, and the parent commit.
type Made struct{ Print, On string }

// Texts contains the texts of a kind. Merged, Closed and Left follow the number of the pull request.
// Unneeded, Refused and ByHand precede a reason; an empty one is not reported.
type Texts struct {
	Merged, Closed, Left, LeftComment string
	Unneeded, Refused, ByHand         string
}

// What is an event of a proposal. The kinds of events have it as their suffix.
type What string

// The events of a proposal.
const (
	WasOpened  What = "opened"
	WasUpdated What = "updated"
	WasClosed  What = "closed"
	WasLeft    What = "left"
	WasRefused What = "refused"
)

// Refusal is an error with the reason why weir cannot propose something, and the manual steps instead.
type Refusal struct{ Text string }

func (e *Refusal) Error() string { return e.Text }

// Refuse returns a *Refusal.
func Refuse(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...)} }

// NotNeeded is an error of a draft. It means that the proposal is no longer needed.
type NotNeeded struct{ Why string }

func (e *NotNeeded) Error() string { return e.Why }

// Now is the state of the source in a turn.
type Now struct {
	Time time.Time
	// Head is the followed commit, and Base its branch.
	Head, Base string
}

// Forge is a forge whose token may push.
type Forge interface {
	Pulls(ctx context.Context, after forge.Cursor) (list []forge.PullRequest, next forge.Cursor, unchanged bool, err error)
	Pull(ctx context.Context, number int64) (forge.PullRequest, error)
	PullOf(ctx context.Context, base, head string) (p forge.PullRequest, found bool, err error)
	OpenPull(ctx context.Context, p forge.Proposal) (forge.PullRequest, error)
	EditPull(ctx context.Context, number int64, title, body string) error
	ClosePull(ctx context.Context, number int64) error
	CreateComment(ctx context.Context, number int64, body string) (forge.Comment, error)
}

// Git is the mirror of the source.
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

// Options configures a Machine.
type Options struct {
	// Record is the name of the stored records, and Source the name of the source.
	Record, Source  string
	PageURL         string
	Author, Address string
	// Every is the minimum time between two changes of one pull request.
	Every  time.Duration
	Forge  Forge
	Git    Git
	Pusher Pusher
	Redact func(string) string
	Event  func(events.Event)
	Logger *slog.Logger
}

// Words returns functions that insert text from outside into weir's texts.
func (o *Options) Words() Words { return Words{Redact: o.Redact} }
