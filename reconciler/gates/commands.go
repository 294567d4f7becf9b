package gates

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/render/lazyregexp"
	"github.com/weir-gitops/weir/render/nearest"
)

// Request contains the arguments of a command. Each command reads the fields that it needs.
type Request struct {
	// By is the local user of the command.
	By      string   `json:"by"`
	Target  string   `json:"target,omitempty"`
	Targets []string `json:"targets,omitempty"`
	// Pool is namespace/name, or a name alone in the namespace default.
	Pool string `json:"pool,omitempty"`
	// All means all targets if Target is empty. When a target is resumed, All also resumes its pools.
	All    bool   `json:"all,omitempty"`
	Reason string `json:"reason,omitempty"`
	// For is a duration in the syntax of time.ParseDuration.
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
	// Stays lists the suspensions that still apply to the resumed target or pool.
	Stays    []Suspension `json:"stays,omitempty"`
	Approval *Approval    `json:"approval,omitempty"`
	// Plans lists the targets whose plan now matches the approved digest. Behind lists the targets for
	// which weir knows a newer commit than the plan's.
	Plans  []string `json:"plans,omitempty"`
	Behind []string `json:"behind,omitempty"`
	// Withdrawn lists the approvals that were withdrawn before their plans started. Begun lists the grants
	// under which no further step starts.
	Withdrawn []Approval `json:"withdrawn,omitempty"`
	Begun     []Grant    `json:"begun,omitempty"`
	// Reconciled lists the targets for which a pass was requested.
	Reconciled []string   `json:"reconciled,omitempty"`
	Overrides  []Override `json:"overrides,omitempty"`
	// Accepted is the loss of records that the user accepted.
	Accepted *state.Loss `json:"accepted,omitempty"`
	// HeededBy names the daemons that own an affected target and have read the request, if several share the
	// work. No write that they start later violates the request. Stored says that further members exist, or
	// that nobody owns an affected target now. Every later owner reads the request first.
	HeededBy []string `json:"heededBy,omitempty"`
	Stored   bool     `json:"stored,omitempty"`
}

// Receipt lists in sentences which members have read the request. It is empty if one daemon runs alone.
func (a Answer) Receipt() (out []string) {
	if len(a.HeededBy) > 0 {
		out = append(out, "Members that have read it: "+strings.Join(a.HeededBy, ", ")+".")
	}
	if a.Stored {
		out = append(out, "It is stored. Every other owner reads it before its next write.")
	}
	return out
}

// Fault is an error in a request, with a hint how to correct it.
type Fault struct {
	Message string `json:"error"`
	Hint    string `json:"hint,omitempty"`
}

// Error returns the message.
func (f *Fault) Error() string { return f.Message }

// Unstored returns a Fault with the reason if err says that the records could not be written. For any other
// error ok is false.
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
	// Knows reports whether a target of the name exists. Targets returns the names of all known targets.
	Knows(target string) bool
	Targets() []string
	// Pools returns the pools of a target as NAMESPACE/NAME, or none if they are unknown.
	Pools(target string) []string
	// Planned returns the plans that a digest covers now, and the targets among them with a newer known
	// commit. It first ends approvals that such a commit supersedes.
	Planned(digest string) (plans []Grant, behind []string, err error)
	// Pass starts a pass now. Running passes over the interrupted targets end before their next step.
	Pass(interrupt []string)
	// Reconcile starts a pass now and returns its targets. No targets means all. If retry is set, the pass
	// also tries parked steps again.
	Reconcile(targets []string, retry bool) ([]string, error)
}

var (
	digestPattern = lazyregexp.New(`^[0-9a-f]{64}$`)
	poolPattern   = lazyregexp.New(`^[a-z0-9][a-z0-9.-]{0,62}/[a-z0-9][a-z0-9.-]{0,252}$`)
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

// resumeAfterLoss continues with the records that exist. It ends no suspension: people made, or repeated,
// the existing ones for the time after the loss.
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

// inForce lists approvals that the user may have meant.
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

// subject returns what a suspension request is about: all targets (both fields empty), a target, or a pool.
// It completes a pool's name without a namespace.
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
	if r.Pool != "" && !poolPattern.MatchString(r.Pool) {
		return Suspension{}, fault("write NAMESPACE/NAME", "%q is not a valid name for a pool", Line(r.Pool, 80))
	}
	return Suspension{Target: r.Target, Pool: r.Pool}, nil
}

// noPool returns the error that a target has no pool of a name, or several.
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

// Line returns s on one line, without control characters and with at most that many characters.
func Line(s string, most int) string {
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, ""), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
	}), " ")
	if r := []rune(s); len(r) > most {
		s = string(r[:most-1]) + "…"
	}
	return s
}
