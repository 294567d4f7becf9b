package gates

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/render/nearest"
)

// Request holds the arguments of a command; each command reads the fields that it needs.
type Request struct {
	// By is the local user of the command.
	By      string   `json:"by"`
	Target  string   `json:"target,omitempty"`
	Targets []string `json:"targets,omitempty"`
	// Pool is namespace/name, or a name alone in the namespace default.
	Pool string `json:"pool,omitempty"`
	// All without a target stands for all targets, and resuming a target for its pools
	// as well.
	All    bool   `json:"all,omitempty"`
	Reason string `json:"reason,omitempty"`
	// For is the duration, in Go's form.
	For            string `json:"for,omitempty"`
	Digest         string `json:"digest,omitempty"`
	Retry          bool   `json:"retry,omitempty"`
	OverrideWindow bool   `json:"overrideWindow,omitempty"`
	// AfterLoss makes weir write again after suspensions and approvals were lost.
	AfterLoss bool `json:"afterLoss,omitempty"`
}

// Answer is the result of a request.
type Answer struct {
	Suspension *Suspension  `json:"suspension,omitempty"`
	Resumed    []Suspension `json:"resumed,omitempty"`
	// Stays are the suspensions that still hold what was resumed.
	Stays    []Suspension `json:"stays,omitempty"`
	Approval *Approval    `json:"approval,omitempty"`
	// Plans are the targets whose plan matches the approved digest now. Behind are those with a
	// newer known commit than the plan's.
	Plans  []string `json:"plans,omitempty"`
	Behind []string `json:"behind,omitempty"`
	// Withdrawn are the approvals that were taken back before anything began, Begun those of
	// which nothing more begins.
	Withdrawn []Approval `json:"withdrawn,omitempty"`
	Begun     []Grant    `json:"begun,omitempty"`
	// Reconciled are the targets for which a pass was requested.
	Reconciled []string   `json:"reconciled,omitempty"`
	Overrides  []Override `json:"overrides,omitempty"`
	// Accepted is the loss that a person accepted.
	Accepted *state.Loss `json:"accepted,omitempty"`
	// HeededBy names the daemons that own what it is about and have read it, where several
	// share the work: no write that begins later is against it. Stored says that there are
	// others, or that nobody owns it now: who does reads it first.
	HeededBy []string `json:"heededBy,omitempty"`
	Stored   bool     `json:"stored,omitempty"`
}

// Receipt says in sentences which members have read the request. It is empty if one daemon runs alone.
func (a Answer) Receipt() (out []string) {
	if len(a.HeededBy) > 0 {
		out = append(out, "Members that have read it: "+strings.Join(a.HeededBy, ", ")+".")
	}
	if a.Stored {
		out = append(out, "It is stored. Every other owner reads it before its next write.")
	}
	return out
}

// Fault is an error in a request, with what to do.
type Fault struct {
	Message string `json:"error"`
	Hint    string `json:"hint,omitempty"`
}

// Error is the message.
func (f *Fault) Error() string { return f.Message }

// Unstored returns the message for an err that says that the records could not be written, and why;
// ok is false for any other error.
func Unstored(err error) (told *Fault, ok bool) {
	var e *state.EngineError
	if !errors.As(err, &e) {
		return nil, false
	}
	return &Fault{Message: e.Error(), Hint: "weir members shows whether the engine answers, and takes writes"}, true
}

func fault(hint, format string, args ...any) error {
	return &Fault{Message: fmt.Sprintf(format, args...), Hint: hint}
}

// Daemon is the part of the running daemon that commands need.
type Daemon interface {
	// Knows reports whether there is a target of the name, Targets names those that
	// are known.
	Knows(target string) bool
	Targets() []string
	// Pools returns the pools of a target, as NAMESPACE/NAME, none if they are unknown.
	Pools(target string) []string
	// Planned returns the plans that a digest stands for now, and the targets among them with a
	// newer known commit. Approvals that such a commit supersedes end first.
	Planned(digest string) (plans []Grant, behind []string, err error)
	// Pass starts a pass now. Passes under way over targets end before their next step.
	Pass(interrupt []string)
	// Reconcile starts a pass now, which tries again the parked steps of the targets
	// where retry is set; no targets stand for all. It returns them.
	Reconcile(targets []string, retry bool) ([]string, error)
}

var (
	digestPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)
	poolPattern   = sync.OnceValue(func() *regexp.Regexp { // not as the program starts: it is large
		return regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,62}/[a-z0-9][a-z0-9.-]{0,252}$`)
	})
)

// Suspend carries out weir suspend.
func Suspend(b *Recorder, d Daemon, r Request) (Answer, error) {
	s, err := subject(d, &r)
	if err != nil {
		return Answer{}, err
	}
	if pools := d.Pools(r.Target); r.Pool != "" && len(pools) > 0 && !slices.Contains(pools, r.Pool) {
		return Answer{}, noPool(r.Target, r.Pool, pools)
	}
	length, err := time.ParseDuration(r.For)
	switch {
	case r.Reason == "":
		return Answer{}, fault("add --reason TEXT", "a reason is required, because others will read it")
	case err != nil || length <= 0 || length > LongestSuspension:
		return Answer{}, fault("write it like --for 2h", "%q is not a valid duration of a suspension, which is 1s to %s", r.For, "2160h")
	}
	s.Reason, s.By = Line(r.Reason, 500), Who(r.By)
	if s, err = b.Suspend(s, length); err != nil {
		return Answer{}, err
	}
	held := []string{s.Target}
	if s.Target == "" {
		held = d.Targets()
	}
	d.Pass(held)
	return Answer{Suspension: &s}, nil
}

// Resume carries out weir resume.
func Resume(b *Recorder, d Daemon, r Request) (Answer, error) {
	s, err := subject(d, &r)
	if err != nil {
		return Answer{}, err
	}
	if r.AfterLoss {
		return resumeAfterLoss(b, d, r)
	}
	ended, err := b.Resume(s.Target, s.Pool, r.All)
	out := Answer{Resumed: ended}
	for _, have := range b.Read().Suspensions {
		if s.Target == "" || have.Target == "" || have.Target == s.Target && (s.Pool == "" || have.Pool == "" || have.Pool == s.Pool) {
			out.Stays = append(out.Stays, have)
		}
	}
	return out, err
}

// resumeAfterLoss goes on with the records that there are. It ends no suspension: those
// that there are were made, or made again, for what comes now.
func resumeAfterLoss(b *Recorder, d Daemon, r Request) (out Answer, err error) {
	if r.Target != "" || !r.All {
		return out, fault("run weir resume --all --after-loss", "--after-loss needs --all")
	}
	switch out.Accepted, err = b.AcceptLoss(); {
	case err != nil:
		return Answer{}, err
	case out.Accepted == nil:
		return Answer{}, fault("omit --after-loss", "nothing was lost")
	}
	out.Stays = b.Read().Suspensions
	out.Reconciled, err = d.Reconcile(nil, false)
	return out, err
}

// Approve carries out weir approve.
func Approve(b *Recorder, d Daemon, r Request) (out Answer, err error) {
	digest, err := digestOf(r)
	if err != nil {
		return Answer{}, err
	}
	plans, behind, err := d.Planned(digest)
	if err != nil {
		return Answer{}, err
	}
	a, err := b.Approve(digest, Who(r.By), plans...)
	if err != nil {
		return Answer{}, err
	}
	out = Answer{Approval: &a, Behind: behind}
	for _, g := range plans {
		out.Plans = append(out.Plans, g.Target)
	}
	d.Pass(nil)
	return out, nil
}

// Unapprove carries out weir unapprove.
func Unapprove(b *Recorder, d Daemon, r Request) (out Answer, err error) {
	digest, err := digestOf(r)
	if err != nil {
		return Answer{}, err
	}
	if out.Withdrawn, out.Begun, err = b.Withdraw(digest, ""); err != nil {
		return Answer{}, err
	}
	if len(out.Withdrawn)+len(out.Begun) == 0 {
		return Answer{}, fault(inForce(b.Read().InForce()), "no approval of %.12s is in force: it was never given, was used, or has ended", digest)
	}
	for _, a := range out.Withdrawn {
		if a.For != "" {
			out.Plans = append(out.Plans, a.For)
		}
	}
	for _, g := range out.Begun {
		out.Plans = append(out.Plans, g.Target)
	}
	d.Pass(out.Plans)
	return out, nil
}

// inForce names approvals that could be meant instead.
func inForce(all []Approval) string {
	const most = 5
	if len(all) == 0 {
		return "no approval is in force; weir history shows earlier approvals"
	}
	var named []string
	for _, a := range all[:min(len(all), most)] {
		named = append(named, a.Text())
	}
	more := ""
	if len(all) > most {
		more = fmt.Sprintf(", and %d more", len(all)-most)
	}
	return "the approvals in force are " + strings.Join(named, ", ") + more
}

func digestOf(r Request) (string, error) {
	digest := strings.ToLower(strings.TrimSpace(r.Digest))
	if !digestPattern.MatchString(digest) {
		return "", fault("copy it from the plan; it has 64 characters", "%q is not a digest of a plan", Line(r.Digest, 80))
	}
	return digest, nil
}

// Reconcile carries out weir reconcile.
func Reconcile(b *Recorder, d Daemon, r Request) (Answer, error) {
	for _, t := range r.Targets {
		if !d.Knows(t) {
			return Answer{}, unknown(d, t)
		}
	}
	var out Answer
	if r.OverrideWindow {
		if len(r.Targets) == 0 {
			return Answer{}, fault("name the targets", "a window is overridden for named targets only")
		}
		for _, t := range r.Targets {
			o, err := b.Override(t, Who(r.By))
			if err != nil {
				return Answer{}, err
			}
			out.Overrides = append(out.Overrides, o)
		}
	}
	var err error
	out.Reconciled, err = d.Reconcile(r.Targets, r.Retry)
	return out, err
}

func unknown(d Daemon, target string) error {
	hint := "weir status shows them all"
	if near := nearest.Word(Line(target, 80), d.Targets()); near != "" {
		hint = fmt.Sprintf("did you mean %q? %s", near, hint)
	}
	return fault(hint, "there is no target %q", Line(target, 80))
}

func subject(d Daemon, r *Request) (Suspension, error) {
	if r.All && r.Target == "" {
		if r.Pool != "" {
			return Suspension{}, fault("omit the pool", "a pool is named, but the request is for all targets")
		}
		return Suspension{}, nil
	}
	if r.Target == "" || !d.Knows(r.Target) {
		return Suspension{}, unknown(d, r.Target)
	}
	if r.Pool != "" && !strings.Contains(r.Pool, "/") {
		pools := d.Pools(r.Target)
		fit := slices.DeleteFunc(slices.Clone(pools), func(p string) bool { return !strings.HasSuffix(p, "/"+r.Pool) })
		switch {
		case len(fit) == 1:
			r.Pool = fit[0]
		case len(pools) == 0:
			r.Pool = "default/" + r.Pool
		default:
			return Suspension{}, noPool(r.Target, r.Pool, pools)
		}
	}
	if r.Pool != "" && !poolPattern().MatchString(r.Pool) {
		return Suspension{}, fault("write NAMESPACE/NAME", "%q is not a valid name for a pool", Line(r.Pool, 80))
	}
	return Suspension{Target: r.Target, Pool: r.Pool}, nil
}

// noPool says that a target has no pool, or several, of a name.
func noPool(target, name string, pools []string) error {
	const most = 10
	more := ""
	if len(pools) > most {
		more = fmt.Sprintf(" and %d more", len(pools)-most)
		pools = pools[:most]
	}
	return fault("its pools are "+strings.Join(pools, ", ")+more, "target %q has not exactly one pool %q", Line(target, 80), Line(name, 80))
}

// Who returns a user's name as weir stores it.
func Who(name string) string {
	if name = Line(name, 64); name == "" {
		return "somebody"
	}
	return name
}

// Line is a person's text on one line, bounded.
func Line(s string, most int) string {
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, ""), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
	}), " ")
	if r := []rune(s); len(r) > most {
		s = string(r[:most-1]) + "…"
	}
	return s
}
