// Package accounts opens AWS accounts: it makes one client for each account, region, role and endpoint in
// use.
//
// A scope (reconciler.ScopeKey) identifies a way into one account and region. Open makes the client of a
// scope on first use and keeps it. AWS says which account it belongs to. A scope that cannot be opened
// affects only its own targets, and the next pass tries again. Two scopes meet if different roles lead into
// the same account and region. Each of them sees only what its own targets want, so Guard prevents deletions
// there.
//
// Plans of pull requests have a Set of their own (ForPlans). The two sets share only the account's limits,
// so that neither affects what the other remembers.
package accounts

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awscloud"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/clock"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/preflight"
	"github.com/weir-gitops/weir/reconciler/resolve"
	"github.com/weir-gitops/weir/render/diag"
)

// Options are the options for opening accounts.
type Options struct {
	Logger *slog.Logger
	Getenv func(string) string
	// OnCall receives each call to AWS. It may be nil.
	OnCall func(sdk.CallInfo)
	// Clock is set by each answer. If it is nil, New makes one.
	Clock *clock.Clock
	// Embedded is the address of an emulator that accepts any credentials. It may be empty.
	Embedded string
	// Yields makes reads use only the part of the account's limits that other callers leave.
	Yields bool
	// ReadsOnly prevents calls that need more than read permissions, such as dry runs.
	ReadsOnly bool
	// Round is the time in which weir describes each idle nodegroup once. Zero describes all of them in
	// every pass.
	Round time.Duration
	// StepsFor bounds the time in which a pass starts steps of pools. Zero means no bound.
	StepsFor time.Duration
	// Fence returns a check for a scope, which runs before each call that may change it. It may be nil.
	Fence func(reconciler.ScopeKey) sdk.Fence
	// Shared says that other members may own a scope next, see reconciler.Scope.
	Shared bool
	// Now is the clock for the age of answers. It defaults to time.Now.
	Now func() time.Time
}

// Set is a set of open accounts and regions.
type Set struct {
	o Options
	// limits are the limits that all roles of an account share.
	limits *sdk.Limits
	// lanes contains the limits that all scopes share during an apply.
	lanes reconciler.Lanes

	mu   sync.Mutex
	open map[reconciler.ScopeKey]*opened
	// answered contains the time of AWS's last answer to a call of each scope.
	answered map[reconciler.ScopeKey]time.Time
	// known contains the last known account of each scope, including forgotten scopes. So weir knows which
	// lease a scope needs before it opens the scope again.
	known map[reconciler.ScopeKey]string
}

// opened is a scope that is open, or that the owner of its turn is opening.
type opened struct {
	turn chan struct{}
	// scope is nil and account is empty until the scope has been opened.
	scope   *reconciler.Scope
	account string
	// cloud is the scope's client. used is the time of its last request.
	cloud *awscloud.Cloud
	used  time.Time
	// failed is the error of opening the scope ahead, until a caller receives it.
	failed error
}

// askEmulator is the time for which weir does not read a rollout again if its machines have not changed. It
// is for endpoints other than AWS, because rollouts of emulators take seconds.
const askEmulator = 3 * time.Second

// New returns a Set without open accounts.
func New(o Options) *Set {
	if o.Clock == nil {
		o.Clock = clock.New()
	}
	return &Set{o: o, limits: sdk.NewLimits(sdk.LimitOptions{}), lanes: reconciler.NewLanes(), open: map[reconciler.ScopeKey]*opened{}, answered: map[reconciler.ScopeKey]time.Time{}, known: map[reconciler.ScopeKey]string{}}
}

// SetShare sets the fraction of AWS's limits that writes may use, greater than 0 and at most 1.
func (s *Set) SetShare(share float64) { s.limits.SetShare(share) }

// Clock returns the clock that is set by the answers of all accounts.
func (s *Set) Clock() *clock.Clock { return s.o.Clock }

// ForPlans returns a separate set for plans. It shares only the limits of the accounts, and uses what the
// original set leaves of them.
func (s *Set) ForPlans() *Set {
	o := s.o
	o.Round, o.Yields, o.ReadsOnly = 0, true, true
	return &Set{o: o, limits: s.limits, lanes: s.lanes, open: map[reconciler.ScopeKey]*opened{}, answered: map[reconciler.ScopeKey]time.Time{}, known: map[reconciler.ScopeKey]string{}}
}

// Attach opens the accounts of the batches in parallel, and guards what they share with each other and with
// others. It does not change others.
func (s *Set) Attach(ctx context.Context, batches []reconciler.Batch, others ...reconciler.Batch) {
	var wg sync.WaitGroup
	for i := range batches {
		wg.Go(func() { s.Open(ctx, batches[i].Key).Attach(&batches[i]) })
	}
	wg.Wait()
	all := slices.Concat(batches, others)
	for i := range batches {
		s.Guard(&batches[i], func(yield func(reconciler.ScopeKey) bool) {
			for j := range all {
				if j != i && !yield(all[j].Key) {
					return
				}
			}
		})
	}
}

// Access is an open scope, or the error of opening it.
type Access struct {
	Scope   *reconciler.Scope
	Account string
	Err     error
}

// Attach gives a batch its scope, and gives its targets their account. If the scope could not be opened, the
// targets get the error.
func (x Access) Attach(b *reconciler.Batch) {
	for i := range b.Targets {
		d := &b.Targets[i]
		if x.Err != nil {
			if d.Err == nil {
				d.Err = fmt.Errorf("open account: %w", x.Err)
			}
			d.Whole = false
			continue
		}
		d.Policy.Account = x.Account
	}
	if x.Scope != nil {
		b.Scope, b.Key.Account = x.Scope, x.Account
	}
}

// Guard prevents deletions if targets of one account and region use different roles, because each scope sees
// only the desired state of its own targets. others are the scopes of the other batches of the composition,
// open or not.
func (s *Set) Guard(b *reconciler.Batch, others iter.Seq[reconciler.ScopeKey]) {
	for other := range others {
		meet, sure := s.Meet(b.Key, other)
		if !meet {
			continue
		}
		b.AllTargets = false
		for j := range b.Targets {
			d := &b.Targets[j]
			d.Whole = false
			if !sure {
				continue // both report it when they are open
			}
			d.Diagnostics = append(slices.Clone(d.Diagnostics), diag.Diagnostic{
				Severity: diag.Warning, Code: "roles-differ",
				Summary: fmt.Sprintf("targets reach account %s, region %s by different roles, so weir deletes nothing there", s.Probably(b.Key), b.Key.Region),
				Detail:  "Give all targets of an account and region the same roleARN.",
			})
		}
		if sure {
			return
		}
	}
}

// Meet reports whether two scopes may be of the same account and region, and whether that is certain. It is
// uncertain while the account of one of them is unknown.
func (s *Set) Meet(a, b reconciler.ScopeKey) (meet, sure bool) {
	if a.Region != b.Region || a.Endpoint != b.Endpoint {
		return false, true
	}
	x, y := s.Probably(a), s.Probably(b)
	sure = x != "" && y != ""
	return !sure || x == y, sure
}

// Probably returns the account of a scope: the known one, else the account in the role's ARN. It is empty if
// none is available.
func (s *Set) Probably(key reconciler.ScopeKey) string {
	account := s.Account(key)
	if role := strings.Split(key.RoleARN, ":"); account == "" && len(role) > 4 {
		account = role[4] // arn:aws:iam::ACCOUNT:role/NAME
	}
	return account
}

// Account returns the account of a scope: the one that AWS returned, else the configured one. It may be
// empty.
func (s *Set) Account(key reconciler.ScopeKey) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if have := s.open[key]; have != nil && have.scope != nil {
		return have.account
	}
	return cmp.Or(key.Account, s.known[key])
}

// Open opens a scope, or returns the open one. It asks AWS for the account, and may take as long as ctx
// allows.
func (s *Set) Open(ctx context.Context, key reconciler.ScopeKey) Access {
	if key.Region == "" {
		return Access{} // the region is not configured, and this machine's default must not replace it
	}
	s.mu.Lock()
	have := s.open[key]
	if have == nil {
		have = &opened{turn: make(chan struct{}, 1)}
		s.open[key] = have
	}
	have.used = time.Now()
	s.mu.Unlock()
	select {
	case have.turn <- struct{}{}:
		defer func() { <-have.turn }()
	case <-ctx.Done():
		return Access{Err: ctx.Err()}
	}
	if err := have.failed; err != nil && have.scope == nil {
		have.failed = nil
		return Access{Err: err}
	}
	if have.scope == nil {
		o := s.Options(key)
		onCall := o.OnCall
		o.OnCall = func(c sdk.CallInfo) {
			s.heard(key, c)
			onCall(c)
		}
		cloud, err := awscloud.Open(ctx, o)
		if err != nil {
			return Access{Err: err}
		}
		var launcher preflight.Launcher
		if !s.o.ReadsOnly {
			launcher = cloud
		}
		options := reconciler.Options{
			Cloud: cloud, Resolver: resolve.New(cloud, s.o.Now), Preflight: preflight.New(cloud, launcher, time.Now), Parameters: cloud,
			Logger: s.o.Logger, StepsFor: s.o.StepsFor, Round: s.o.Round, Clock: s.o.Clock.Earliest, Now: s.o.Now, Shared: s.o.Shared, Lanes: s.lanes,
		}
		if key.Endpoint != "" {
			options.AskEvery = askEmulator
		}
		scope := reconciler.NewScope(options)
		s.mu.Lock()
		have.scope, have.account, have.cloud = scope, cloud.Account(), cloud
		s.known[key] = have.account
		s.mu.Unlock()
	}
	return Access{Scope: have.scope, Account: have.account}
}

// Cloud returns the client of an open scope, nil if the scope is not open.
func (s *Set) Cloud(key reconciler.ScopeKey) *awscloud.Cloud {
	s.mu.Lock()
	defer s.mu.Unlock()
	if have := s.open[key]; have != nil {
		return have.cloud
	}
	return nil
}

// Ahead starts to open a scope and to read the resources of an owner there, for a caller that will soon need
// both. The next Open returns its error.
func (s *Set) Ahead(ctx context.Context, key reconciler.ScopeKey, owner string) {
	go func() {
		x := s.Open(ctx, key)
		s.mu.Lock()
		have := s.open[key]
		var cloud *awscloud.Cloud
		if have != nil {
			cloud = have.cloud
		}
		s.mu.Unlock()
		switch {
		case have == nil: // the scope was forgotten
		case x.Err != nil:
			have.turn <- struct{}{}
			have.failed = x.Err
			<-have.turn
		case cloud != nil:
			cloud.Ahead(ctx, owner)
		}
	}()
}

// Forget drops a scope that passes no longer use. A running pass there continues.
func (s *Set) Forget(key reconciler.ScopeKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if have := s.open[key]; have != nil && have.cloud != nil {
		have.cloud.Close()
	}
	delete(s.open, key)
	delete(s.answered, key)
}

// Opened returns the number of open scopes.
func (s *Set) Opened() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, have := range s.open {
		if have.scope != nil {
			n++
		}
	}
	return n
}

// Keep drops open scopes that are not wanted. It leaves out scopes that are just being opened; their caller
// drops them.
func (s *Set) Keep(wanted func(reconciler.ScopeKey) bool) {
	s.mu.Lock()
	var over []reconciler.ScopeKey
	for key, have := range s.open {
		if have.scope != nil && !wanted(key) {
			over = append(over, key)
		}
	}
	s.mu.Unlock()
	for _, key := range over {
		s.Forget(key)
	}
}

// ForgetUnused drops the scopes that were not used for the given time.
func (s *Set) ForgetUnused(since time.Duration) {
	s.mu.Lock()
	var unused []reconciler.ScopeKey
	for key, have := range s.open {
		if time.Since(have.used) >= since {
			unused = append(unused, key)
		}
	}
	s.mu.Unlock()
	for _, key := range unused {
		s.Forget(key)
	}
}

// heard notes that AWS has answered, even with an error.
func (s *Set) heard(key reconciler.ScopeKey, c sdk.CallInfo) {
	if c.Kind == observed.Transient || c.Kind == observed.Cancelled {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[key] != nil { // otherwise the scope was forgotten
		s.answered[key] = time.Now()
	}
}

// Answered returns the time of AWS's last answer to a call of a scope, or the zero time.
func (s *Set) Answered(key reconciler.ScopeKey) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answered[key]
}
