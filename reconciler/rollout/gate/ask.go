package gate

import (
	"context"
	"fmt"
	"maps"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/render/intent"
)

// Sample is one value of a query, with its distinguishing labels; "" for a single value.
type Sample struct {
	Of    string
	Value float64
}

// Provider answers queries. Its error is a sentence without a secret.
type Provider interface {
	Query(ctx context.Context, query string) ([]Sample, error)
}

const (
	// askEvery is the time for which a provider's answer is reused: a conductor runs every second,
	// and a stop may take a minute.
	askEvery = 10 * time.Second
	// saidKept is the time for which an unused answer is kept.
	saidKept = time.Minute
	// parallel is the number of concurrent queries.
	parallel = 4
)

// Asker answers requests of rollouts to gates. It is safe for concurrent use.
type Asker struct {
	// Provider returns the provider with a name, nil for none.
	Provider func(name string) Provider
	Now      func() time.Time
	// MaxAge returns the maximum age of owners' reports. A nil MaxAge accepts any age.
	MaxAge func() time.Duration

	mu   sync.Mutex
	said map[question]*said
}

// question is a query to a provider.
type question struct{ provider, query string }

// said is the provider's answer.
type said struct {
	samples []Sample
	err     error
	at      time.Time
}

// Answers answers the requests, each under its Key, from the owners' reports and from providers. It
// sends queries concurrently, and each query once.
func (a *Asker) Answers(ctx context.Context, asks []rollout.Ask, pools []rollout.Pool) map[string]rollout.Answer {
	a.ask(ctx, asks)
	maxAge := time.Duration(0)
	if a.MaxAge != nil {
		maxAge = a.MaxAge()
	}
	out := make(map[string]rollout.Answer, len(asks))
	for _, ask := range asks {
		if g := ask.Gate.Prometheus; g != nil {
			out[ask.Key()] = a.queried(ask)
		} else {
			out[ask.Key()] = Judge(ask, pools, a.Now(), maxAge)
		}
	}
	return out
}

// ask sends missing queries to providers, and forgets unused answers.
func (a *Asker) ask(ctx context.Context, asks []rollout.Ask) {
	a.mu.Lock()
	if a.said == nil {
		a.said = map[question]*said{}
	}
	maps.DeleteFunc(a.said, func(_ question, s *said) bool { return a.Now().Sub(s.at) > saidKept })
	due := map[question]bool{}
	for _, ask := range asks {
		if g := ask.Gate.Prometheus; g != nil {
			q := question{g.Provider, g.Query}
			old := a.said[q]
			due[q] = due[q] || old == nil || a.Now().Sub(old.at) >= askEvery || old.at.Before(ask.Since)
		}
	}
	a.mu.Unlock()
	free := make(chan struct{}, parallel)
	var wg sync.WaitGroup
	for q, is := range due {
		if !is {
			continue
		}
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			s := a.query(ctx, q)
			a.mu.Lock()
			defer a.mu.Unlock()
			a.said[q] = s
		})
	}
	wg.Wait()
}

func (a *Asker) query(ctx context.Context, q question) *said {
	s := &said{at: a.Now()} // the answer is not older
	if p := a.Provider(q.provider); p == nil {
		s.err = fmt.Errorf("the configuration has no gate provider %s", q.provider)
	} else {
		s.samples, s.err = p.Query(ctx, q.query)
	}
	return s
}

// queried returns the answer of a Prometheus gate from the last query. The verdict is Unknown
// without a query or after an error.
func (a *Asker) queried(ask rollout.Ask) rollout.Answer {
	g := ask.Gate.Prometheus
	a.mu.Lock()
	s := a.said[question{g.Provider, g.Query}]
	a.mu.Unlock()
	switch {
	case s == nil:
		return rollout.Answer{Verdict: rollout.Unknown, What: g.Provider + " has not been queried yet", At: a.Now()}
	case s.err != nil:
		return rollout.Answer{Verdict: rollout.Unknown, What: g.Provider + " has not answered: " + clip(s.err.Error()), At: s.at}
	}
	answer := Within(g, s.samples)
	answer.At = s.at
	return answer
}

// Within judges the values of a query: each must be within the gate's bounds.
func Within(g *intent.PrometheusGate, samples []Sample) rollout.Answer {
	bounds := "at most " + number(g.Max)
	switch {
	case g.Min != nil && g.Max != nil:
		bounds = "from " + number(g.Min) + " to " + number(g.Max)
	case g.Min != nil:
		bounds = "at least " + number(g.Min)
	}
	if len(samples) == 0 {
		return rollout.Answer{Verdict: rollout.Unknown, What: g.Provider + " has no value for the query; if no value means success, append `or vector(0)`"}
	}
	found := make([]finding, len(samples))
	texts := make([]string, len(samples))
	for i, s := range samples {
		texts[i] = number(&s.Value)
		if s.Of != "" {
			texts[i] += " of " + clip(s.Of)
		}
		f := finding{verdict: rollout.Pass}
		switch {
		case math.IsNaN(s.Value):
			f = finding{verdict: rollout.Unknown, what: "the query has no number: " + texts[i]}
		case g.Min != nil && s.Value < *g.Min, g.Max != nil && s.Value > *g.Max:
			f = finding{verdict: rollout.Fail, what: texts[i] + " is not " + bounds}
		}
		found[i] = f
	}
	return worst(found, list(texts)+", "+bounds)
}

func number(v *float64) string {
	if v == nil {
		return "any"
	}
	return strconv.FormatFloat(*v, 'g', 6, 64)
}
