package jointoken

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/workload"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/lazyregexp"
	"github.com/weir-gitops/weir/render/secret"
)

// The namespace in which kubeadm and the API server expect tokens.
const (
	namespace  = "kube-system"
	secretType = "bootstrap.kubernetes.io/token"
	namePrefix = "bootstrap-token-"
	// nodeGroup is the group whose members kubeadm allows to become nodes.
	nodeGroup = "system:bootstrappers:kubeadm:default-node-token"
)

// The tags and labels. Label values must be short and of few characters, so the pool's key is also an
// annotation.
const (
	keyOwner  = "weir.dev/owner"
	keyTarget = "weir.dev/target"
	keySource = "weir.dev/source"
	keyPool   = "weir.dev/pool"
	managedBy = "app.kubernetes.io/managed-by"
)

// ErrForeign says that a parameter with the wanted name belongs to another owner.
var ErrForeign = errors.New("a parameter of that name exists and is not this weir's")

// check is one check of all tokens.
type check struct {
	keeper *Keeper
	req    Request
	now    time.Time

	info   workload.ClusterInfo
	tokens []token                // valid tokens, the longest remaining life first
	have   map[string]cachedToken // by parameter name
	until  map[string]time.Time
	diags  diag.List
	writes int
	made   int
	// more says that tokens remain for the next pass to make.
	more bool
}

// run handles the request, and reports whether something failed.
func (c *check) run(ctx context.Context) (failed bool) {
	params, err := c.keeper.Parameters.TaggedParameters(ctx, map[string]string{keyOwner: c.req.Owner, keyTarget: c.req.Target})
	if err != nil {
		c.problem("", "the parameters with join tokens could not be listed", err)
		return true
	}
	c.have = map[string]cachedToken{}
	for _, p := range params {
		c.have[p.Name] = parse(p.Description)
	}
	if len(c.req.Wanted)+len(params) == 0 {
		c.removeUnused(ctx)
		return false
	}
	for _, p := range c.req.Wanted {
		if h := c.have[p.Parameter]; h.until.After(c.now) {
			c.until[p.Key] = h.until
		}
	}
	if c.info, err = c.keeper.Cluster.ClusterInfo(ctx); err != nil {
		c.problem("", "the cluster of the target's kubeconfig does not say how nodes join it", err)
		return true
	}
	secrets, err := c.keeper.Cluster.Secrets(ctx, namespace, c.labels())
	if err != nil {
		c.problem("", "the join tokens of the target's cluster could not be listed", err)
		return true
	}
	c.sort(ctx, secrets)
	wanted := map[string]bool{}
	for _, p := range c.req.Wanted {
		wanted[p.Parameter] = true
		c.keep(ctx, p)
	}
	c.leftovers(ctx, params, wanted)
	return len(c.diags) > 0
}

// removeUnused removes tokens that no parameter ever got. The request needs no tokens here, so the cluster
// may be unavailable.
func (c *check) removeUnused(ctx context.Context) {
	secrets, err := c.keeper.Cluster.Secrets(ctx, namespace, c.labels())
	if err != nil {
		return
	}
	c.sort(ctx, secrets)
	c.leftovers(ctx, nil, nil)
}

// labels returns the labels of the target's tokens.
func (c *check) labels() map[string]string {
	return map[string]string{managedBy: "weir", keyOwner: label(c.req.Owner), keyTarget: label(c.req.Target)}
}

var labelValue = lazyregexp.New(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`)

// label returns a value as a label's value: unchanged if valid, else its hash.
func label(value string) string {
	if labelValue.MatchString(value) {
		return value
	}
	sum := sha256.Sum256([]byte(value))
	return hex.EncodeToString(sum[:16])
}

// sort separates valid tokens from expired ones, and deletes the expired ones, because the cluster's own
// token cleaner may be off.
func (c *check) sort(ctx context.Context, secrets []workload.Secret) {
	for _, s := range secrets {
		if s.Type != secretType || !strings.HasPrefix(s.Name, namePrefix) {
			continue
		}
		t := token{id: string(s.Data["token-id"]), secret: string(s.Data["token-secret"]), pool: s.Annotations[keyPool], object: s}
		t.until, _ = time.Parse(time.RFC3339, string(s.Data["expiration"])) // an invalid time is zero, so the token has expired
		if !t.until.After(c.now) {
			c.remove(ctx, t)
			continue
		}
		if s.Name == namePrefix+t.id && tokenForm.MatchString(t.id+"."+t.secret) {
			c.tokens = append(c.tokens, t)
		}
	}
	slices.SortStableFunc(c.tokens, func(a, b token) int { return b.until.Compare(a.until) })
}

var tokenForm = lazyregexp.New(`^[a-z0-9]{6}\.[a-z0-9]{16}$`)

func (c *check) remove(ctx context.Context, t token) {
	if err := c.keeper.Cluster.DeleteSecret(ctx, namespace, t.object.Name, t.object.UID); err != nil {
		if workload.KindOf(err) != workload.Conflict { // another object has taken the name
			c.problem(t.pool, "a join token that is not needed any more could not be deleted", err)
		}
		return
	}
	c.writes++
}

// keep makes sure that a parameter contains a token that is valid for long enough.
func (c *check) keep(ctx context.Context, p Pool) {
	if h := c.have[p.Parameter]; h.cluster == clusterHash(c.info) && slices.ContainsFunc(c.tokens, func(t token) bool {
		return t.id == h.id && t.pool == p.Key && t.until.Sub(c.now) > renewBefore
	}) {
		return
	}
	delete(c.until, p.Key)
	old := c.have[p.Parameter]
	if i := slices.IndexFunc(c.tokens, func(t token) bool { return t.id == old.id && t.pool == p.Key }); i >= 0 {
		c.until[p.Key] = c.tokens[i].until // until the new one replaces it
	}
	t, ok := c.token(ctx, p.Key)
	if !ok {
		return
	}
	value := strings.Join(append([]string{t.id + "." + t.secret, c.info.Endpoint}, c.info.CAHashes...), " ")
	err := c.keeper.Parameters.PutParameter(ctx, Write{
		Name: p.Parameter, Description: describe(t, clusterHash(c.info)), Value: value,
		Tags: map[string]string{keyOwner: c.req.Owner, keyTarget: c.req.Target, keySource: c.req.Source, keyPool: p.Key},
	})
	if err != nil {
		c.putFailed(p, t, err)
		return
	}
	c.writes++
	c.until[p.Key] = t.until
}

// token returns a token that is valid for long enough: an existing one with the longest remaining life, so
// that several instances choose the same one, or a new one.
func (c *check) token(ctx context.Context, pool string) (token, bool) {
	for _, t := range c.tokens {
		if t.pool == pool && t.until.Sub(c.now) > renewBefore {
			return t, true
		}
	}
	if c.made >= mostWrites {
		c.more = true
		return token{}, false
	}
	c.made++
	t := token{id: random(6), secret: random(16), until: c.now.Add(Life).Truncate(time.Second), pool: pool}
	labels := c.labels()
	labels[keyPool] = label(pool)
	made, err := c.keeper.Cluster.CreateSecret(ctx, workload.Secret{
		Namespace: namespace, Name: namePrefix + t.id, Type: secretType, Labels: labels,
		Annotations: map[string]string{keyPool: pool, keySource: c.req.Source},
		Data: map[string][]byte{
			"token-id": []byte(t.id), "token-secret": []byte(t.secret), "expiration": []byte(t.until.UTC().Format(time.RFC3339)),
			"usage-bootstrap-authentication": []byte("true"), "usage-bootstrap-signing": []byte("true"), "auth-extra-groups": []byte(nodeGroup),
			"description": []byte("weir keeps it for the machines of pool " + pool),
		},
	})
	if err != nil {
		c.problem(pool, "no join token could be made", err)
		return token{}, false
	}
	c.writes++
	t.object = made
	c.tokens = append(c.tokens, t)
	return t, true
}

func (c *check) putFailed(p Pool, t token, err error) {
	if errors.Is(err, ErrForeign) {
		c.diags = append(c.diags, diag.Diagnostic{
			Severity: diag.Error, Code: "join-token-conflict", Summary: fmt.Sprintf("the join token of pool %s is not written: the parameter %s exists and is not this weir's", p.Key, p.Parameter),
			Detail: diag.Hint("join-token-conflict"),
		})
		return
	}
	c.problem(p.Key, "the join token could not be written to parameter "+p.Parameter, scrubbed{err, t})
}

// scrubbed is an error without the token, because AWS quotes refused requests.
type scrubbed struct {
	err error
	t   token
}

// Error implements error.
func (s scrubbed) Error() string {
	return secret.New(s.t.secret, s.t.id+"."+s.t.secret).Finder().Redact(s.err.Error())
}

// leftovers keeps the tokens that machines may still fetch, and deletes all others. It deletes tokens before
// parameters, so that no credential is left without its parameter.
func (c *check) leftovers(ctx context.Context, params []Parameter, wanted map[string]bool) {
	needed := map[string]bool{}
	for _, p := range c.req.Wanted {
		needed[p.Key] = true
	}
	var gone []Parameter
	for _, p := range params {
		pool, known := c.keyOf(p.Name)
		switch {
		case wanted[p.Name] || !known || c.req.Left[pool]:
		case c.req.Standing[pool]:
			before, had := c.until[pool]
			c.keep(ctx, Pool{Key: pool, Parameter: p.Name})
			if had {
				c.until[pool] = before
			}
		default:
			gone = append(gone, p)
		}
	}
	if !c.req.Prune {
		return
	}
	for _, t := range c.tokens {
		if t.pool != "" && !needed[t.pool] && !c.req.Standing[t.pool] && !c.req.Left[t.pool] {
			c.remove(ctx, t)
		}
	}
	for _, p := range gone {
		if err := c.keeper.Parameters.DeleteParameter(ctx, p.Name); err != nil {
			pool, _ := c.keyOf(p.Name)
			c.problem(pool, "the parameter "+p.Name+", which no machine fetches any more, could not be deleted", err)
			continue
		}
		c.writes++
	}
}

// keyForm matches a key: of a pool, or of a launch configuration that pools share.
var keyForm = lazyregexp.New(`^(launch-config/)?[^/]+/[^/]+$`)

// keyOf returns the key for which a parameter is: the end of its name. The prefix may repeat the rest of the
// name, as in /weir/prod/weir/prod/default/web.
func (c *check) keyOf(parameter string) (key string, ok bool) {
	for rest, before := parameter, "/"+c.req.Owner+"/"+c.req.Target+"/"; ; {
		at := strings.Index(rest, before)
		if at < 0 {
			return "", false
		}
		if key = rest[at+len(before):]; keyForm.MatchString(key) {
			return key, true
		}
		rest = rest[at+1:]
	}
}

// problem records a failure. It is an error if machines that start now cannot join, and otherwise a warning.
func (c *check) problem(pool, what string, err error) {
	severity := diag.Warning
	for _, p := range c.req.Wanted {
		if (pool == "" || p.Key == pool) && c.until[p.Key].IsZero() && c.keeper.last.Until[p.Key].Before(c.now) {
			severity = diag.Error
		}
	}
	if pool != "" {
		what = "pool " + pool + ": " + what
	}
	detail := diag.Hint("join-token-failed")
	switch workload.KindOf(err) {
	case workload.Forbidden:
		detail = "Allow the user of the kubeconfig to list, create and delete Secrets in kube-system, to get the ConfigMap kube-public/cluster-info, and to list nodes."
	case workload.Unauthorized:
		detail = "Renew the credentials in the target's kubeconfig."
	}
	c.diags = append(c.diags, diag.Diagnostic{Severity: severity, Code: "join-token-failed", Summary: what + ": " + err.Error(), Detail: detail})
}
