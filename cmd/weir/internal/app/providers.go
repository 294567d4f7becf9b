package app

import (
	"context"
	"sync"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler/clock"
	"github.com/weir-gitops/weir/reconciler/rollout/gate"
	"github.com/weir-gitops/weir/reconciler/rollout/prometheus"
)

// provider is a server that gates query. It is opened at its first query. So files that are mounted late
// are found, and until then only its own gates are unknown.
type provider struct {
	options prometheus.Options

	mu     sync.Mutex
	client *prometheus.Client
}

// Query implements gate.Provider.
func (p *provider) Query(ctx context.Context, query string) ([]gate.Sample, error) {
	client, err := p.open()
	if err != nil {
		return nil, err
	}
	return client.Query(ctx, query)
}

func (p *provider) open() (*prometheus.Client, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.client == nil {
		client, err := prometheus.Open(p.options)
		if err != nil {
			return nil, err
		}
		p.client = client
	}
	return p.client, nil
}

// close closes idle connections. A query in progress continues.
func (p *provider) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.client != nil {
		p.client.Close()
	}
}

// providers contains the gate providers of a configuration, by name.
type providers map[string]*provider

func makeProviders(list []config.GateProvider) providers {
	out := providers{}
	for _, p := range list {
		out[p.Name] = &provider{options: prometheus.Options{
			URL: p.URL, TokenFile: p.TokenFile, Username: p.Username, PasswordFile: p.PasswordFile, CAFile: p.CAFile,
		}}
	}
	return out
}

func (ps providers) close() {
	for _, p := range ps {
		p.close()
	}
}

// newGates returns the Asker that answers gates based on the current configuration. A report of an owner is
// valid for two intervals and a minute.
func newGates(c *clock.Clock, now *currentGeneration) *gate.Asker {
	return &gate.Asker{
		Now: c.Earliest, // reports of owners use AWS's clock
		Provider: func(name string) gate.Provider {
			if p := now.Load().providers[name]; p != nil {
				return p
			}
			return nil
		},
		MaxAge: func() time.Duration { return 2*now.interval() + time.Minute },
	}
}
