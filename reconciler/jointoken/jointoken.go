// Package jointoken maintains the tokens with which machines join a Kubernetes cluster. For each pool whose
// machines fetch one, it makes a bootstrap token Secret in the cluster, and a SecureString parameter of AWS
// Systems Manager with the token, the API server's endpoint and the hashes of the cluster's CA. The
// machines' launch template names the parameter and contains no credential.
//
// All state is in the cluster and AWS: the parameter's description has the token's id and expiry, and its
// tags and the Secret's labels have the owner. So a process may stop between any two calls:
//
//	Secret made      the next check finds it and puts it into the parameter
//	parameter put    complete
//	Secret deleted   the pool is gone: the next check deletes its parameter
//
// A token is renewed when half of its life is over. The previous one stays until it has expired,
// so a machine that has just fetched it can still join.
package jointoken

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/workload"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/lazyregexp"
)

// The lifetimes of tokens, and the times between checks.
const (
	// Life is the lifetime of a token, the same as of kubeadm's own tokens.
	Life = 24 * time.Hour
	// renewBefore is the remaining lifetime at which a token is renewed. weir may be down for that time
	// without a machine failing to join.
	renewBefore = Life / 2
	// checkEvery is the time between checks while nothing changes. retryAfter is the time after a failed
	// check.
	checkEvery = 5 * time.Minute
	retryAfter = time.Minute
	// mostWrites bounds the tokens to make in one check, so that many new pools do not delay a pass for
	// minutes: Systems Manager accepts few writes per second. The next pass makes the remaining tokens.
	mostWrites = 20
)

// Parameter is a parameter that weir owns.
type Parameter struct {
	Name, Description string
}

// Write is a parameter to write. Tags are only set at creation.
type Write struct {
	Name, Description, Value string
	Tags                     map[string]string
}

// Parameters is the parameter store of an account and region.
type Parameters interface {
	// TaggedParameters lists the parameters that have all of the tags.
	TaggedParameters(ctx context.Context, tags map[string]string) ([]Parameter, error)
	// PutParameter creates or changes a SecureString. A parameter without the tags belongs to another owner:
	// PutParameter then returns ErrForeign and changes nothing.
	PutParameter(ctx context.Context, w Write) error
	// DeleteParameter deletes a parameter. A missing parameter is no error.
	DeleteParameter(ctx context.Context, name string) error
}

// Cluster is the cluster that the machines join.
type Cluster interface {
	ClusterInfo(ctx context.Context) (workload.ClusterInfo, error)
	Secrets(ctx context.Context, namespace string, labels map[string]string) ([]workload.Secret, error)
	CreateSecret(ctx context.Context, s workload.Secret) (workload.Secret, error)
	DeleteSecret(ctx context.Context, namespace, name, uid string) error
}

// Pool is a pool, or several pools with one launch template, whose machines fetch a token.
type Pool struct {
	// Key is the key of the pool ("namespace/name"), or of the shared launch configuration.
	Key string
	// Parameter is the name of the parameter that they fetch. It ends in owner, target and key, separated by
	// slashes.
	Parameter string
}

// Request lists the tokens that a target needs.
type Request struct {
	Owner, Source, Target string
	Wanted                []Pool
	// Standing has the keys for which machines may start from an earlier launch template. Their tokens are
	// kept, even if Git no longer has the pool.
	Standing map[string]bool
	// Left has the keys for which nothing is written or removed.
	Left map[string]bool
	// Prune deletes tokens that no pool needs.
	Prune bool
}

// Result is the result of a request.
type Result struct {
	// Until has the expiry of each token, by key. Pools without a valid token have no entry.
	Until       map[string]time.Time
	Diagnostics diag.List
	// Writes is the number of calls that changed something, in the cluster or in AWS.
	Writes int
}

// Keeper maintains the tokens of one target. It only remembers the last check, and everything else can be
// read again.
type Keeper struct {
	Parameters Parameters
	Cluster    Cluster
	Now        func() time.Time

	mu   sync.Mutex
	due  time.Time
	mark string
	last Result
}

// Keep makes, renews and removes tokens according to the request. Between its checks it answers from memory.
// Failures are in the result's diagnostics, and are retried automatically.
func (k *Keeper) Keep(ctx context.Context, req Request) Result {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.Now()
	mark := req.mark()
	if mark == k.mark && now.Before(k.due) {
		out := k.last
		out.Writes = 0
		return out
	}
	c := &check{keeper: k, req: req, now: now, until: map[string]time.Time{}}
	failed := c.run(ctx)
	for _, p := range req.Wanted {
		// While nothing can be read, a known token stays valid until its expiry.
		if t, known := k.last.Until[p.Key]; known && failed && t.After(now) && c.until[p.Key].IsZero() {
			c.until[p.Key] = t
		}
	}
	k.mark, k.due = mark, now.Add(checkEvery)
	if failed || c.more {
		k.due = now.Add(retryAfter)
	}
	if c.more {
		k.due = now
	}
	k.last = Result{Until: c.until, Diagnostics: c.diags, Writes: c.writes}
	return k.last
}

// mark returns a text that differs for different requests.
func (r Request) mark() string {
	var parts []string
	for _, p := range r.Wanted {
		parts = append(parts, "want "+p.Key+" "+p.Parameter)
	}
	for i, keys := range []map[string]bool{r.Standing, r.Left} {
		for key, on := range keys {
			parts = append(parts, fmt.Sprint(i, key, on))
		}
	}
	slices.Sort(parts)
	return fmt.Sprint(r.Owner, r.Source, r.Target, r.Prune, parts)
}

// cachedToken contains the facts in a parameter's description.
type cachedToken struct {
	id      string
	until   time.Time
	cluster string
}

var description = lazyregexp.New(`^weir: join token ([a-z0-9]{6}) until (\S+), cluster ([0-9a-f]{12})$`)

func describe(t token, cluster string) string {
	return fmt.Sprintf("weir: join token %s until %s, cluster %s", t.id, t.until.UTC().Format(time.RFC3339), cluster)
}

// parse parses the result of describe. Any other text counts as an expired token.
func parse(text string) cachedToken {
	m := description.FindStringSubmatch(text)
	if m == nil {
		return cachedToken{}
	}
	until, err := time.Parse(time.RFC3339, m[2])
	if err != nil {
		return cachedToken{}
	}
	return cachedToken{id: m[1], until: until, cluster: m[3]}
}

// token is a bootstrap token, or the parts of an unusable one.
type token struct {
	id, secret string
	until      time.Time
	pool       string
	object     workload.Secret
}

// String leaves the secret out when a token is printed.
func (t token) String() string { return "join token " + t.id }

// GoString returns the same as String.
func (t token) GoString() string { return t.String() }

const alphabet = "abcdefghijklmnopqrstuvwxyz0123456789"

// random returns n characters of the alphabet, with equal probability.
func random(n int) string {
	out := make([]byte, 0, n)
	b := make([]byte, 2*n)
	for len(out) < n {
		_, _ = rand.Read(b) // never fails
		for _, c := range b {
			if int(c) < len(alphabet)*7 && len(out) < n {
				out = append(out, alphabet[int(c)%len(alphabet)])
			}
		}
	}
	return string(out)
}

// clusterHash identifies a parameter's facts about the cluster.
func clusterHash(i workload.ClusterInfo) string {
	sum := sha256.Sum256([]byte(i.Endpoint + " " + strings.Join(i.CAHashes, " ")))
	return hex.EncodeToString(sum[:6])
}
