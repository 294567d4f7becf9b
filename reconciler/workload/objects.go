package workload

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Secret is a v1 Secret. Printing one shows its name and nothing of its data.
type Secret struct {
	Namespace, Name string
	UID             string // "" before it is made
	Type            string
	Labels          map[string]string
	Annotations     map[string]string
	Data            map[string][]byte
	CreatedAt       time.Time
}

// String implements fmt.Stringer.
func (s Secret) String() string { return "Secret " + s.Namespace + "/" + s.Name }

// GoString implements fmt.GoStringer.
func (s Secret) GoString() string { return s.String() }

// Node is a v1 Node.
type Node struct {
	Name, UID string
	// ProviderID is the machine as the cloud provider names it, such as
	// aws:///eu-west-1a/i-0123456789abcdef0; empty until that has been set.
	ProviderID string
	// Ready says that the condition Ready is True; ReadySince is when that
	// condition last changed, zero if there is none.
	Ready      bool
	ReadySince time.Time
	// Why is what the condition says where it is not True.
	Why string
}

type metadata struct {
	Namespace         string            `json:"namespace,omitempty"`
	Name              string            `json:"name"`
	UID               string            `json:"uid,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	Annotations       map[string]string `json:"annotations,omitempty"`
	CreationTimestamp *time.Time        `json:"creationTimestamp,omitempty"`
}

type wireSecret struct {
	APIVersion string            `json:"apiVersion,omitempty"`
	Kind       string            `json:"kind,omitempty"`
	Metadata   metadata          `json:"metadata"`
	Type       string            `json:"type,omitempty"`
	Data       map[string][]byte `json:"data,omitempty"` // base64 on the wire
}

func (w *wireSecret) secret() Secret {
	m := &w.Metadata
	s := Secret{Namespace: m.Namespace, Name: m.Name, UID: m.UID, Type: w.Type, Labels: m.Labels, Annotations: m.Annotations, Data: w.Data}
	if m.CreationTimestamp != nil {
		s.CreatedAt = *m.CreationTimestamp
	}
	return s
}

type wireNode struct {
	Metadata metadata `json:"metadata"`
	Spec     struct {
		ProviderID string `json:"providerID"`
	} `json:"spec"`
	Status struct {
		Conditions []struct {
			Type               string    `json:"type"`
			Status             string    `json:"status"`
			Reason             string    `json:"reason"`
			Message            string    `json:"message"`
			LastTransitionTime time.Time `json:"lastTransitionTime"`
		} `json:"conditions"`
	} `json:"status"`
}

func (w *wireNode) node() Node {
	n := Node{Name: w.Metadata.Name, UID: w.Metadata.UID, ProviderID: w.Spec.ProviderID}
	for _, c := range w.Status.Conditions {
		if c.Type == "Ready" {
			n.Ready, n.ReadySince = c.Status == "True", c.LastTransitionTime
			if !n.Ready {
				n.Why = clip(strings.Trim(c.Reason+": "+c.Message, ": "))
			}
		}
	}
	return n
}

func secretsPath(namespace string) string {
	return "/api/v1/namespaces/" + url.PathEscape(namespace) + "/secrets"
}

// CreateSecret makes a Secret and returns it as the server stored it. A name that
// is taken is a Conflict.
func (c *Cluster) CreateSecret(ctx context.Context, s Secret) (Secret, error) {
	in := wireSecret{APIVersion: "v1", Kind: "Secret", Type: s.Type, Data: s.Data,
		Metadata: metadata{Namespace: s.Namespace, Name: s.Name, Labels: s.Labels, Annotations: s.Annotations}}
	var out wireSecret
	err := c.do(ctx, request{verb: "create", resource: s.String(), method: http.MethodPost, path: secretsPath(s.Namespace), in: in, secret: true}, &out)
	return out.secret(), err
}

// Secret reads one Secret.
func (c *Cluster) Secret(ctx context.Context, namespace, name string) (Secret, error) {
	var out wireSecret
	err := c.do(ctx, request{verb: "get", resource: "Secret " + namespace + "/" + name, method: http.MethodGet, path: secretsPath(namespace) + "/" + url.PathEscape(name)}, &out)
	return out.secret(), err
}

// Secrets lists the Secrets of a namespace that have all of the labels, by name.
func (c *Cluster) Secrets(ctx context.Context, namespace string, labels map[string]string) ([]Secret, error) {
	var terms []string
	for k, v := range labels {
		terms = append(terms, k+"="+v)
	}
	slices.Sort(terms)
	items, err := list[wireSecret](ctx, c, "secrets in "+namespace, secretsPath(namespace), url.Values{"labelSelector": {strings.Join(terms, ",")}})
	out := make([]Secret, len(items))
	for i := range items {
		out[i] = items[i].secret()
	}
	return out, err
}

// DeleteSecret deletes a Secret if it still is the one with the given uid. One
// that is gone is no error; another of the same name is a Conflict.
func (c *Cluster) DeleteSecret(ctx context.Context, namespace, name, uid string) error {
	options := map[string]any{"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": map[string]string{"uid": uid}}
	err := c.do(ctx, request{verb: "delete", resource: "Secret " + namespace + "/" + name, method: http.MethodDelete,
		path: secretsPath(namespace) + "/" + url.PathEscape(name), in: options}, nil)
	if KindOf(err) == NotFound {
		return nil
	}
	return err
}

// Nodes lists all nodes, by name.
func (c *Cluster) Nodes(ctx context.Context) ([]Node, error) {
	items, err := list[wireNode](ctx, c, "nodes", "/api/v1/nodes", url.Values{})
	out := make([]Node, len(items))
	for i := range items {
		out[i] = items[i].node()
	}
	return out, err
}

// Version is the Kubernetes version of the API server, such as "v1.33.4-eks-1a2b3c".
func (c *Cluster) Version(ctx context.Context) (string, error) {
	var out struct {
		GitVersion string `json:"gitVersion"`
	}
	err := c.do(ctx, request{verb: "get", resource: "version", method: http.MethodGet, path: "/version"}, &out)
	return clip(out.GitVersion), err
}

// clip bounds a text that is only told.
func clip(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// ConfigMap reads the data of one ConfigMap.
func (c *Cluster) ConfigMap(ctx context.Context, namespace, name string) (map[string]string, error) {
	var out struct {
		Data map[string]string `json:"data"`
	}
	err := c.do(ctx, request{verb: "get", resource: "ConfigMap " + namespace + "/" + name, method: http.MethodGet,
		path: "/api/v1/namespaces/" + url.PathEscape(namespace) + "/configmaps/" + url.PathEscape(name)}, &out)
	return out.Data, err
}

// Bounds of a list: far more than a cluster has, and little enough for a server
// that is none to fill no memory.
const (
	mostObjects = 50_000
	mostPages   = 2 * mostObjects / pageSize
)

// objects are the items of a page. They are decoded one by one, for the shortest
// of them take a hundred times more room than their text.
type objects[T any] []T

var errTooMany = errors.New("too many objects")

// UnmarshalJSON implements json.Unmarshaler.
func (o *objects[T]) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	if start, err := dec.Token(); err != nil || start != json.Delim('[') {
		return errors.New("no list")
	}
	for dec.More() {
		if len(*o) == mostObjects {
			return errTooMany
		}
		var one T
		if err := dec.Decode(&one); err != nil {
			return err
		}
		*o = append(*o, one)
	}
	return nil
}

// list reads all pages of a list. Where the server has forgotten the point at
// which the next page begins, which takes it five minutes, it begins anew once.
func list[T any](ctx context.Context, c *Cluster, what, path string, query url.Values) ([]T, error) {
	var out []T
	again := false
	query.Set("limit", strconv.Itoa(pageSize))
	for range mostPages {
		var page struct {
			Metadata struct {
				Continue string `json:"continue"`
			} `json:"metadata"`
			Items objects[T] `json:"items"`
		}
		err := c.do(ctx, request{verb: "list", resource: what, method: http.MethodGet, path: path, query: query}, &page)
		var failed *Error
		if errors.As(err, &failed) && failed.Status == http.StatusGone && query.Has("continue") && !again {
			again, out = true, nil
			query.Del("continue")
			continue
		}
		if err != nil {
			return nil, err
		}
		if out = append(out, page.Items...); len(out) > mostObjects {
			break
		}
		if page.Metadata.Continue == "" {
			return out, nil
		}
		query.Set("continue", page.Metadata.Continue)
	}
	return nil, &Error{Kind: Invalid, Verb: "list", Resource: what, Message: fmt.Sprintf("the list does not end within %d objects", mostObjects)}
}

type request struct {
	verb, resource string
	method, path   string
	query          url.Values
	in             any // nil: no body
	// secret says that the body is secret: the server's message, which may quote
	// it, is left out of errors.
	secret bool
}

// do sends one request and decodes the answer into out, nil for none. Nothing is
// sent twice: the next pass is the next try.
func (c *Cluster) do(ctx context.Context, r request, out any) error {
	fail := func(e *Error) error {
		e.Verb, e.Resource = r.verb, r.resource
		return e
	}
	var body io.Reader
	if r.in != nil {
		text, err := json.Marshal(r.in)
		if err != nil {
			return fail(&Error{Kind: Invalid, Message: "the object cannot be written as JSON"})
		}
		body = bytes.NewReader(text)
	}
	at := c.server.String() + r.path
	if len(r.query) > 0 {
		at += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, at, body)
	if err != nil {
		return fail(&Error{Kind: Invalid, Message: err.Error()})
	}
	token, err := c.bearer()
	if err != nil {
		var e *Error
		errors.As(err, &e)
		return fail(e)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "weir")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return fail(transportError(ctx, err))
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, bodyLimit+1))
	switch {
	case err != nil:
		return fail(transportError(ctx, err))
	case len(text) > bodyLimit:
		return fail(&Error{Kind: Invalid, Status: resp.StatusCode, Message: fmt.Sprintf("the answer has more than %d MiB", bodyLimit>>20)})
	case resp.StatusCode/100 != 2:
		return fail(refusal(resp.StatusCode, text, r.secret))
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(text, out); errors.Is(err, errTooMany) {
		return fail(&Error{Kind: Invalid, Status: resp.StatusCode, Message: fmt.Sprintf("the answer has more than %d objects", mostObjects)})
	} else if err != nil {
		// Something between weir and the server answered, in HTML most of the time.
		return fail(&Error{Kind: Transient, Status: resp.StatusCode, Message: "the answer is not the JSON of the Kubernetes API"})
	}
	return nil
}

// messageLimit bounds what is shown of a server's message, in bytes.
const messageLimit = 300

func refusal(status int, text []byte, secret bool) *Error {
	e := &Error{Status: status, Kind: Transient}
	switch {
	case status == http.StatusUnauthorized:
		e.Kind = Unauthorized
	case status == http.StatusForbidden:
		e.Kind = Forbidden
	case status == http.StatusNotFound:
		e.Kind = NotFound
	case status == http.StatusConflict:
		e.Kind = Conflict
	case status == http.StatusTooManyRequests, status == http.StatusRequestTimeout, status == http.StatusGone, status >= 500:
	default: // redirects too: this server is not the API server
		e.Kind = Invalid
	}
	e.Message = fmt.Sprintf("%d %s", status, http.StatusText(status))
	var said struct {
		Kind    string `json:"kind"`
		Reason  string `json:"reason"`
		Message string `json:"message"`
	}
	if json.Unmarshal(text, &said) != nil || said.Kind != "Status" {
		return e
	}
	if secret && e.Kind != Forbidden && e.Kind != Unauthorized {
		said.Message = said.Reason
	}
	if said.Message != "" {
		e.Message += ": " + strings.ToValidUTF8(said.Message[:min(len(said.Message), messageLimit)], "")
	}
	return e
}
