package fleet

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awscloud"
	"github.com/weir-gitops/weir/reconciler/resolve"
	"github.com/weir-gitops/weir/render/diag"
)

// ScopesOptions say how accounts are opened.
type ScopesOptions struct {
	Logger *slog.Logger
	Getenv func(string) string
	// OnCall is told of each call to AWS; nil for nobody.
	OnCall func(awscloud.CallInfo)
	// Embedded is the address of an AWS that takes any credentials; empty for none.
	Embedded string
	// Offline opens no account and decrypts nothing with AWS: what is composed is
	// for looking at what Git wants.
	Offline bool
	// Slices spreads the descriptions of resting nodegroups over that many passes.
	Slices int
	// StepsFor bounds the time in which a pass begins with pools; 0 is no bound.
	StepsFor time.Duration
}

// Scopes opens accounts and regions when they are first needed, and keeps them.
// One that cannot be opened is tried again at the next pass.
type Scopes struct {
	o ScopesOptions
	// limits are what all roles that reach an account share.
	limits *awscloud.Limits

	mu   sync.Mutex
	open map[reconciler.ScopeKey]*opened
}

type opened struct {
	scope   *reconciler.Scope
	account string
}

// NewScopes opens nothing yet.
func NewScopes(o ScopesOptions) *Scopes {
	return &Scopes{o: o, limits: awscloud.NewLimits(awscloud.LimitOptions{}), open: map[reconciler.ScopeKey]*opened{}}
}

// ForPlans are scopes of their own, which share only the limits of the accounts.
func (s *Scopes) ForPlans() *Scopes {
	o := s.o
	o.Slices = 0
	return &Scopes{o: o, limits: s.limits, open: map[reconciler.ScopeKey]*opened{}}
}

// SetSlices spreads the descriptions of resting nodegroups over n passes from the
// next pass on. No pass may be under way.
func (s *Scopes) SetSlices(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.o.Slices = n
	for _, o := range s.open {
		o.scope.Slices = n
	}
}

// Slices is over how many passes the descriptions of nodegroups are spread.
func (s *Scopes) Slices() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.o.Slices
}

// Attach gives each batch its scope and its targets their account. Where a scope
// cannot be opened, the targets' errors say why.
func (s *Scopes) Attach(ctx context.Context, batches []reconciler.Batch) {
	if s.o.Offline {
		return
	}
	var wg sync.WaitGroup
	for i := range batches {
		b := &batches[i]
		wg.Go(func() {
			got, err := s.get(ctx, b.Key)
			for j := range b.Targets {
				d := &b.Targets[j]
				if err != nil {
					if d.Err == nil {
						d.Err = fmt.Errorf("open account: %w", err)
					}
					d.Whole = false
					continue
				}
				d.Policy.Account = got.account
			}
			if err == nil {
				b.Scope, b.Key.Account = got.scope, got.account
			}
		})
	}
	wg.Wait()
	guardShared(batches)
}

// place is an account and region, however it is reached.
type place struct{ account, region, endpoint string }

// byPlace groups the positions of the batches that have a scope.
func byPlace(batches []reconciler.Batch) map[place][]int {
	out := map[place][]int{}
	for i, b := range batches {
		if b.Scope != nil {
			p := place{b.Key.Account, b.Key.Region, b.Key.Endpoint}
			out[p] = append(out[p], i)
		}
	}
	return out
}

// guardShared keeps anything from being deleted where targets of one account and
// region use different roles: each scope sees only its own targets' wishes.
func guardShared(batches []reconciler.Batch) {
	for p, list := range byPlace(batches) {
		if len(list) < 2 {
			continue
		}
		for _, i := range list {
			for j := range batches[i].Targets {
				d := &batches[i].Targets[j]
				d.Whole = false
				d.Diagnostics = append(d.Diagnostics, diag.Diagnostic{
					Severity: diag.Warning, Code: "roles-differ",
					Summary: fmt.Sprintf("targets reach account %s, region %s by different roles, so nothing is deleted there", p.account, p.region),
					Detail:  "Give all targets of an account and region the same roleARN.",
				})
			}
		}
	}
}

func (s *Scopes) get(ctx context.Context, key reconciler.ScopeKey) (*opened, error) {
	s.mu.Lock()
	have := s.open[key]
	s.mu.Unlock()
	if have != nil {
		return have, nil
	}
	cloud, err := awscloud.Open(ctx, s.cloudOptions(key))
	if err != nil {
		return nil, err
	}
	have = &opened{account: cloud.Account(), scope: &reconciler.Scope{
		Cloud: cloud, Resolver: resolve.New(cloud, time.Now), Parameters: cloud, Logger: s.o.Logger, StepsFor: s.o.StepsFor,
	}}
	s.mu.Lock()
	defer s.mu.Unlock()
	have.scope.Slices = s.o.Slices
	s.open[key] = have
	return have, nil
}

// loopbackOnly reports whether an endpoint is on this machine while no
// credentials are configured anywhere: an emulator then takes any.
func (s *Scopes) loopbackOnly(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	if u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return false
	}
	for _, name := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_SHARED_CREDENTIALS_FILE",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
	} {
		if s.o.Getenv(name) != "" {
			return false
		}
	}
	_, err = os.Stat(filepath.Join(s.o.Getenv("HOME"), ".aws", "credentials"))
	return err != nil
}
