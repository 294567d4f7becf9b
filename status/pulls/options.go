package pulls

import (
	"context"
	"log/slog"
	"time"

	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/simulate"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/report"
)

// Git merges pull requests.
type Git interface {
	Pull(ctx context.Context, p source.PullRef) (source.Merge, error)
	Forget(head string) error
	// Descends reports whether a commit equals another one, or descends from it.
	Descends(ctx context.Context, revision, from string) (bool, error)
}

// Display shows the state of pull requests. Its methods do not block.
type Display interface {
	// Begin shows that a new head is being planned.
	Begin(source string, number int64, sha string)
	Show(p report.Pull)
	// Deliver sends the final state of a pull request to the forge, which may not have it. All other sinks
	// have already shown it.
	Deliver(p report.Pull)
	// Owes reports whether the forge has not yet received the last shown state of a pull request.
	Owes(source string, number int64) bool
	// Written compares weir's comment on a pull request, as the forge shows it, with weir's last write.
	// intact means that they are the same, and edited that another user has edited the comment since. whole
	// says that c contains its whole text.
	Written(source string, c forge.Comment, whole bool) (intact, edited bool)
	// Again makes the next Show search for the comment, and write it in any case.
	Again(source string, number int64)
}

// Approver stores approvals with their origin, a pull request as SOURCE#NUMBER.
type Approver interface {
	// ApproveFrom approves plans. plans maps the digests of plans to their targets.
	ApproveFrom(from string, plans map[string]string, by string) error
	// Withdraw withdraws approvals that came from a pull request: all, or the ones whose digest starts with
	// the given one.
	Withdraw(digest, from string) (unused []gates.Approval, begun []gates.Grant, err error)
}

// Metrics receives counts of pull requests and their plans.
type Metrics interface {
	Pulls(source string, open map[report.PullState]int)
	PullPlan(source string, took time.Duration)
}

// Forge is the part of a forge's client that a Watcher uses. forge.Client documents the methods.
type Forge interface {
	Profile() forge.Profile
	Self(ctx context.Context) (string, error)
	Pulls(ctx context.Context, after forge.Cursor) (list []forge.PullRequest, next forge.Cursor, unchanged bool, err error)
	Pull(ctx context.Context, number int64) (forge.PullRequest, error)
	MergedSince(ctx context.Context, since time.Time) (list []forge.PullRequest, whole bool, err error)
	Comments(ctx context.Context, number int64, since time.Time) ([]forge.Comment, error)
	CommentsSince(ctx context.Context, since time.Time) ([]forge.Comment, error)
	Permission(ctx context.Context, user string) (forge.Level, error)
	Edits(ctx context.Context, c forge.Comment) (forge.Edits, error)
	React(ctx context.Context, number, comment int64, r forge.Reaction) error
	CreateComment(ctx context.Context, number int64, body string) (forge.Comment, error)
}

// Options configures a Watcher.
type Options struct {
	// Source is the source's name.
	Source string
	Forge  Forge
	Git    Git
	// Follows reports whether the source follows a ref, given by its full name.
	Follows func(ref string) bool
	// Base returns the last composed fleet, nil before the first.
	Base func() *fleet.Base
	// Accounts are the accounts with roles for plans. Use them only for plans.
	Accounts fleet.Accounts
	Policy   Policy
	Display  Display
	// Redact removes secrets from a pull request that is stored.
	Redact   report.Redact
	Approver Approver
	// Approved is called after approvals, and after decisions about trailers, to start a pass that uses
	// them.
	Approved func()
	// Withdrawn is called after an approval was withdrawn from a plan that was already being applied.
	Withdrawn func(targets []string)
	DB        state.Store
	// Passive says that another weir owns the source, so this one sends no request to the forge and writes
	// nothing. Rule and Images then use the records of the owner, as read by Reread. Run must not be
	// called.
	Passive bool
	// PageURL is the address of weir's page, empty for none.
	PageURL string
	// Marker is in every comment that shows a plan.
	Marker string
	// Assume contains the assumptions of forecasts. Within is the timeout of a forecast; 0 means one
	// second.
	Assume simulate.Assumptions
	Within time.Duration
	// Interval is the time between two polls of the forge.
	Interval time.Duration
	// Turns contains the slots that all watchers share.
	Turns *Turns
	Event func(events.Event)
	// Heard contains the texts of comments that webhooks reported. With several daemons, it must outlive
	// the Watcher. If it is nil, the Watcher creates its own.
	Heard *Heard
	// Metrics may be nil.
	Metrics Metrics
	Logger  *slog.Logger
	// Now defaults to time.Now.
	Now func() time.Time
}
