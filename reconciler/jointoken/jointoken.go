// Package jointoken keeps the tokens by which machines join a Kubernetes cluster.
// For each pool whose machines fetch one there is a bootstrap token Secret in the
// cluster, and a SecureString parameter of AWS Systems Manager with the token, the
// API server's endpoint and the hashes of the cluster's CA. The machines' launch
// template names the parameter and holds no credential.
//
// The cluster and AWS hold all that is known: which token a parameter has and how
// long it holds stands in the parameter's description, and whose they are in its
// tags and in the Secret's labels. So a process may stop between any two calls:
//
//	Secret made      the next check finds it and puts it into the parameter
//	parameter put    all is well
//	Secret deleted   the pool is gone: the next check deletes its parameter
//
// A token is renewed when half of its life is over. The one before it stays until
// it has expired, so a machine that has just fetched it still joins.
package jointoken

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/workload"
	"github.com/weir-gitops/weir/render/diag"
)

// How long tokens live, and when they are looked at.
const (
	// Life is a token's life; kubeadm's own tokens live as long.
	Life = 24 * time.Hour
	// renewBefore is the rest of a token's life at which a new one is made: so long may
	// weir be down without a machine failing to join.
	renewBefore = Life / 2
	// checkEvery is the time between checks while nothing changes, and retryAfter the time after a
	// failed check.
	checkEvery = 5 * time.Minute
	retryAfter = time.Minute
	// mostWrites is the number of tokens to make in one check, so that many new pools do not delay
	// a pass for minutes: Systems Manager accepts few writes a second. The other tokens follow in
	// the next pass.
	mostWrites = 20
)

// Parameter is a parameter of weir's.
type Parameter struct {
	Name, Description string
}

// Write is a parameter to write. Tags are set where it is made.
type Write struct {
	Name, Description, Value string
	Tags                     map[string]string
}

// Parameters is the parameter store of an account and region.
type Parameters interface {
	// TaggedParameters lists the parameters that have all of the tags.
	TaggedParameters(ctx context.Context, tags map[string]string) ([]Parameter, error)
	// PutParameter makes or changes a SecureString. One that exists without the tags
	// belongs to another owner: the error is then ErrForeign, and nothing changes.
	PutParameter(ctx context.Context, w Write) error
	// DeleteParameter deletes one; that it is gone already is no error.
	DeleteParameter(ctx context.Context, name string) error
}

// Cluster is the cluster that the machines join.
type Cluster interface {
	ClusterInfo(ctx context.Context) (workload.ClusterInfo, error)
	Secrets(ctx context.Context, namespace string, labels map[string]string) ([]workload.Secret, error)
	CreateSecret(ctx context.Context, s workload.Secret) (workload.Secret, error)
	DeleteSecret(ctx context.Context, namespace, name, uid string) error
}

// Pool is a pool, or several with one launch template, whose machines fetch a token.
type Pool struct {
	// Key names it: "namespace/name" of a pool.
	Key string
	// Parameter is the name of the parameter that they fetch. It ends in owner,
	// target and key, with slashes between them.
	Parameter string
}

// Request says which tokens a target needs.
type Request struct {
	Owner, Source, Target string
	Wanted                []Pool
	// Standing says by key that machines may start from an earlier launch template:
	// what these fetch is kept too, whether Git still wants the pool or not.
	Standing map[string]bool
	// Left holds keys for which nothing is written or removed.
	Left map[string]bool
	// Prune deletes what no pool needs any more.
	Prune bool
}

// Result is the result of a request.
type Result struct {
	// Until says by key how long the token holds that its machines fetch; pools
	// without a token that holds are not in it.
	Until       map[string]time.Time
	Diagnostics diag.List
	// Writes is the number of calls that changed something, in the cluster or in AWS.
	Writes int
}

// Keeper keeps the tokens of one target. It remembers when it last looked, and
// nothing that cannot be read again.
type Keeper struct {
	Parameters Parameters
	Cluster    Cluster
	Now        func() time.Time

	mu   sync.Mutex
	due  time.Time
	mark string
	last Result
}

// Keep makes, renews and removes tokens so that the request holds. Between its
// checks it answers from memory. Failures are in the result's diagnostics, and are
// tried again by themselves.
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
		// While nothing can be read, what was known before holds until its time.
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

// mark distinguishes requests.
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

// cachedToken holds the facts in a parameter's description.
type cachedToken struct {
	id      string
	until   time.Time
	cluster string
}

var description = regexp.MustCompile(`^weir: join token ([a-z0-9]{6}) until (\S+), cluster ([0-9a-f]{12})$`)

func describe(t token, cluster string) string {
	return fmt.Sprintf("weir: join token %s until %s, cluster %s", t.id, t.until.UTC().Format(time.RFC3339), cluster)
}

// parse reads what describe wrote; anything else is a token that has expired.
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

// token is a bootstrap token, or the rest of an unusable one.
type token struct {
	id, secret string
	until      time.Time
	pool       string
	object     workload.Secret
}

// String keeps the secret part out of prints.
func (t token) String() string { return "join token " + t.id }

// GoString is String.
func (t token) GoString() string { return t.String() }

const alphabet = "abcdefghijklmnopqrstuvwxyz0123456789"

// random returns n characters of the alphabet, all equally likely.
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
