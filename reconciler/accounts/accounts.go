// Package accounts opens AWS: one client for each account, region, role and endpoint
// that something is wanted of.
//
// A scope (reconciler.ScopeKey) is a way into one account and region. Open gives the
// client of a scope, which it makes when it is first asked for and keeps; whose account
// it is, AWS says. A scope that cannot be opened holds up its own targets only, and is
// tried again by the next pass. Two scopes meet where different roles lead into one
// account and region. Each then sees what its own targets want and no more, so Guard
// keeps anything from being deleted there.
//
// Plans of pull requests have a Set of their own (ForPlans): nothing that one remembers
// changes what the other does, and they share only the account's limits.
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

// Options say how accounts are opened.
type Options struct {
	Logger *slog.Logger
	Getenv func(string) string
	// OnCall gets each call to AWS; nil for no listener.
	OnCall func(sdk.CallInfo)
	// Each answer sets Clock; nil makes one.
	Clock *clock.Clock
	// Embedded is the address of an AWS that takes any credentials; empty for none.
	Embedded string
	// Yields makes reads wait for what others leave of the account's limits.
	Yields bool
	// ReadsOnly makes no call that needs more than the permission to read: no dry run.
	ReadsOnly bool
	// Round is the time in which weir describes each idle nodegroup once; 0 describes all of them
	// in every pass.
	Round time.Duration
	// StepsFor bounds the time in which a pass begins with pools; 0 is no bound.
	StepsFor time.Duration
	// Fence gives what each call that may change a scope asks first; nil: none asks.
	Fence func(reconciler.ScopeKey) sdk.Fence
	// Shared says that other weirs may own a scope next: see reconciler.Scope.
	Shared bool
	// Now tells how old answers are, and when to ask again; nil for time.Now.
	Now func() time.Time
}

// Set is the accounts and regions that are open.
type Set struct {
	o Options
	// limits are the limits that all roles into an account share.
	limits *sdk.Limits
	// lanes holds the limits that all scopes share when they apply.
	lanes reconciler.Lanes

	mu   sync.Mutex
	open map[reconciler.ScopeKey]*opened
	// answered holds the time of AWS's last answer to a call of each scope.
	answered map[reconciler.ScopeKey]time.Time
	// known holds AWS's last answer about the account of each scope, also of forgotten scopes. So
	// weir knows which lease a scope needs before it opens the scope again.
	known map[reconciler.ScopeKey]string
}

// opened is a scope that is open, or that the holder of its turn is opening.
type opened struct {
	turn chan struct{}
	// scope is nil, and account empty, until it has been opened.
	scope   *reconciler.Scope
	account string
	// cloud is the scope's client of the account, used when it was last asked for.
	cloud *awscloud.Cloud
	used  time.Time
	// failed is why it could not be opened ahead, until somebody asks.
	failed error
}

// askEmulator is the time for which weir does not read a rollout whose machines show nothing new
// from an endpoint other than AWS itself: emulators roll in seconds.
const askEmulator = 3 * time.Second

// New opens nothing yet.
func New(o Options) *Set {
	if o.Clock == nil {
		o.Clock = clock.New()
	}
	return &Set{o: o, limits: sdk.NewLimits(sdk.LimitOptions{}), lanes: reconciler.NewLanes(), open: map[reconciler.ScopeKey]*opened{}, answered: map[reconciler.ScopeKey]time.Time{}, known: map[reconciler.ScopeKey]string{}}
}

// SetShare says how much of AWS's limits writes take, from now on: over 0 to 1.
func (s *Set) SetShare(share float64) { s.limits.SetShare(share) }

// Clock is the time according to the answers of all accounts.
func (s *Set) Clock() *clock.Clock { return s.o.Clock }

// ForPlans is a separate set: it shares only the limits of the accounts, and uses what
// others leave of them.
func (s *Set) ForPlans() *Set {
	o := s.o
	o.Round, o.Yields, o.ReadsOnly = 0, true, true
	return &Set{o: o, limits: s.limits, lanes: s.lanes, open: map[reconciler.ScopeKey]*opened{}, answered: map[reconciler.ScopeKey]time.Time{}, known: map[reconciler.ScopeKey]string{}}
}

// Attach opens the accounts of the batches in parallel, and guards what they share with each other
// and with others. It does not change others.
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

// Access is a way into an account and region, or why there is no way.
type Access struct {
	Scope   *reconciler.Scope
	Account string
	Err     error
}

// Attach gives a batch its scope and its targets their account. If it has none, the targets' errors
// say why.
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

// Guard keeps anything from being deleted where targets of one account and region
// use different roles: each scope sees only the desired state of its own targets. Others are those
// of the other batches of the composition, open or not.
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
				continue // both tell once they are open
			}
			d.Diagnostics = append(slices.Clone(d.Diagnostics), diag.Diagnostic{
				Severity: diag.Warning, Code: "roles-differ",
				Summary: fmt.Sprintf("targets reach account %s, region %s by different roles, so nothing is deleted there", s.Probably(b.Key), b.Key.Region),
				Detail:  "Give all targets of an account and region the same roleARN.",
			})
		}
		if sure {
			return
		}
	}
}

// Meet reports whether two scopes may be of one account and region, and whether that is
// sure: it is not while the account of one of them is unknown.
func (s *Set) Meet(a, b reconciler.ScopeKey) (meet, sure bool) {
	if a.Region != b.Region || a.Endpoint != b.Endpoint {
		return false, true
	}
	x, y := s.Probably(a), s.Probably(b)
	sure = x != "" && y != ""
	return !sure || x == y, sure
}

// Probably is the account of a scope: as AWS said, as it is configured, or as the role's
// name says; empty where it is not given.
func (s *Set) Probably(key reconciler.ScopeKey) string {
	account := s.Account(key)
	if role := strings.Split(key.RoleARN, ":"); account == "" && len(role) > 4 {
		account = role[4] // arn:aws:iam::ACCOUNT:role/NAME
	}
	return account
}

// Account is that of a scope, empty before it was first opened where none is configured.
func (s *Set) Account(key reconciler.ScopeKey) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if have := s.open[key]; have != nil && have.scope != nil {
		return have.account
	}
	return cmp.Or(key.Account, s.known[key])
}

// Open opens a scope, or returns the open one. It asks AWS for the account, and so may take as long
// as ctx allows.
func (s *Set) Open(ctx context.Context, key reconciler.ScopeKey) Access {
	if key.Region == "" {
		return Access{} // no setting says where: a default of this machine's is no answer
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

// Ahead begins to open a scope, and to read what an owner has there, for a caller that
// will ask for both once it has found what is wanted. The next Open tells of what failed.
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
		case have == nil: // there is no such scope, or no more
		case x.Err != nil:
			have.turn <- struct{}{}
			have.failed = x.Err
			<-have.turn
		case cloud != nil:
			cloud.Ahead(ctx, owner)
		}
	}()
}

// Forget drops a scope over which no pass goes any more. A pass that is under way there
// all the same goes on.
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

// Keep lets go of the scopes that are open and that nobody wants. One that is being opened stays: who opens it sees to that.
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

// ForgetUnused drops the scopes that no caller has asked for so long.
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

// heard notes that AWS has answered, however it did.
func (s *Set) heard(key reconciler.ScopeKey, c sdk.CallInfo) {
	if c.Kind == observed.Transient || c.Kind == observed.Cancelled {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[key] != nil { // else it is forgotten
		s.answered[key] = time.Now()
	}
}

// Answered returns the time of AWS's last answer to a call of a scope, zero for none.
func (s *Set) Answered(key reconciler.ScopeKey) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answered[key]
}
