package workload

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
)

// Secret is a v1 Secret. Printing it shows its name, but none of its data.
type Secret struct {
	Namespace, Name string
	UID             string // "" before it is created
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
	// ProviderID is the cloud provider's name of the machine, such as aws:///eu-west-1a/i-0123456789abcdef0.
	// It is empty until it has been set.
	ProviderID string
	// Ready says that the condition Ready is True. ReadySince is the last change of that condition, or zero.
	Ready      bool
	ReadySince time.Time
	// Created is the time at which the machine joined.
	Created time.Time
	// Why is the reason and message of the condition if it is not True.
	Why string
	// Unschedulable says that it accepts no new pods.
	Unschedulable bool
	Annotations   map[string]string
}

func secretOf(o *corev1.Secret) Secret {
	return Secret{Namespace: o.Namespace, Name: o.Name, UID: string(o.UID), Type: string(o.Type), Labels: o.Labels, Annotations: o.Annotations, Data: o.Data, CreatedAt: o.CreationTimestamp.Time}
}

func nodeOf(o *corev1.Node) Node {
	n := Node{Name: o.Name, UID: string(o.UID), ProviderID: o.Spec.ProviderID, Created: o.CreationTimestamp.Time, Unschedulable: o.Spec.Unschedulable, Annotations: o.Annotations}
	for _, c := range o.Status.Conditions {
		if c.Type == corev1.NodeReady {
			n.Ready, n.ReadySince = c.Status == corev1.ConditionTrue, c.LastTransitionTime.Time
			if !n.Ready {
				n.Why = clip(strings.Trim(c.Reason+": "+c.Message, ": "))
			}
		}
	}
	return n
}

// CreateSecret creates a Secret and returns it as the server stored it. If the name exists, the error is a
// Conflict.
func (c *Cluster) CreateSecret(ctx context.Context, s Secret) (Secret, error) {
	in := corev1.Secret{Type: corev1.SecretType(s.Type), Data: s.Data, ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name, Labels: s.Labels, Annotations: s.Annotations}}
	var out corev1.Secret
	err := c.do(ctx, "create", s.String(), c.rest.Post().Namespace(s.Namespace).Resource("secrets").Body(&in), &out)
	return secretOf(&out), err
}

// Secret reads one Secret.
func (c *Cluster) Secret(ctx context.Context, namespace, name string) (Secret, error) {
	var out corev1.Secret
	err := c.do(ctx, "get", "Secret "+namespace+"/"+name, c.rest.Get().Namespace(namespace).Resource("secrets").Name(name), &out)
	return secretOf(&out), err
}

// Secrets lists the Secrets of a namespace that have all of the labels, by name.
func (c *Cluster) Secrets(ctx context.Context, namespace string, with map[string]string) ([]Secret, error) {
	what := "secrets in " + namespace
	return list(what, metav1.ListOptions{LabelSelector: labels.Set(with).String()}, func(o *metav1.ListOptions) ([]Secret, string, error) {
		var page corev1.SecretList
		err := c.do(ctx, "list", what, c.rest.Get().Namespace(namespace).Resource("secrets").VersionedParams(o, parameters), &page)
		return each(page.Items, secretOf), page.Continue, err
	})
}

// DeleteSecret deletes a Secret if it still has the given uid. A missing Secret is no error. Another Secret
// of the same name is a Conflict.
func (c *Cluster) DeleteSecret(ctx context.Context, namespace, name, uid string) error {
	options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(uid)}
	err := c.do(ctx, "delete", "Secret "+namespace+"/"+name, c.rest.Delete().Namespace(namespace).Resource("secrets").Name(name).Body(&options), nil)
	if KindOf(err) == NotFound {
		return nil
	}
	return err
}

// Nodes lists all nodes, by name.
func (c *Cluster) Nodes(ctx context.Context) ([]Node, error) {
	return list("nodes", metav1.ListOptions{}, func(o *metav1.ListOptions) ([]Node, string, error) {
		var page corev1.NodeList
		err := c.do(ctx, "list", "nodes", c.rest.Get().Resource("nodes").VersionedParams(o, parameters), &page)
		return each(page.Items, nodeOf), page.Continue, err
	})
}

// Version returns the Kubernetes version of the API server, such as "v1.33.4-eks-1a2b3c".
func (c *Cluster) Version(ctx context.Context) (string, error) {
	var raw runtime.Unknown
	if err := c.do(ctx, "get", "version", c.rest.Get().AbsPath("/version"), &raw); err != nil {
		return "", err
	}
	var out version.Info
	if json.Unmarshal(raw.Raw, &out) != nil {
		return "", &Error{Kind: Transient, Verb: "get", Resource: "version", Message: noJSON}
	}
	return clip(out.GitVersion), nil
}

// ConfigMap reads the data of one ConfigMap.
func (c *Cluster) ConfigMap(ctx context.Context, namespace, name string) (map[string]string, error) {
	var out corev1.ConfigMap
	err := c.do(ctx, "get", "ConfigMap "+namespace+"/"+name, c.rest.Get().Namespace(namespace).Resource("configmaps").Name(name), &out)
	return out.Data, err
}

// clip shortens a text that is only displayed.
func clip(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// The bounds of a list. No cluster reaches them, and they prevent that a server that is no API server fills
// the memory.
const (
	mostObjects = 50_000
	mostPages   = 2 * mostObjects / pageSize
	// mostInside bounds the number of objects and lists inside all items of an answer.
	mostInside = 2_000_000
)

// list reads all pages of a list. A server forgets the position of the next page after five minutes. list
// then starts again, once.
func list[T any](what string, o metav1.ListOptions, ask func(*metav1.ListOptions) ([]T, string, error)) ([]T, error) {
	var out []T
	again := false
	o.Limit = pageSize
	for range mostPages {
		page, next, err := ask(&o)
		var failed *Error
		if errors.As(err, &failed) && failed.Status == http.StatusGone && o.Continue != "" && !again {
			again, out, o.Continue = true, nil, ""
			continue
		}
		if err != nil {
			return nil, err
		}
		if out = append(out, page...); len(out) > mostObjects {
			break
		}
		if next == "" {
			return out, nil
		}
		o.Continue = next
	}
	return nil, &Error{Kind: Invalid, Verb: "list", Resource: what, Message: fmt.Sprintf("the list does not end within %d objects", mostObjects)}
}

// each converts the items of a page.
func each[T, U any](items []T, convert func(*T) U) []U {
	out := make([]U, len(items))
	for i := range items {
		out[i] = convert(&items[i])
	}
	return out
}

// noJSON is the error if something between weir and the server answered, usually in HTML.
const noJSON = "the answer is not the JSON of the Kubernetes API"

// do sends one request and decodes the answer into out, which may be nil. It never retries, because the next
// pass tries again.
func (c *Cluster) do(ctx context.Context, verb, resource string, r *rest.Request, out runtime.Object) error {
	// client-go's logs may quote the answer.
	result := r.MaxRetries(0).Do(logr.NewContext(ctx, logr.Discard()))
	err := result.Error()
	if raw, ok := out.(*runtime.Unknown); ok && err == nil {
		raw.Raw, err = result.Raw()
	} else if out != nil && err == nil {
		err = result.Into(out)
	}
	if err == nil {
		return nil
	}
	failed := &Error{Kind: Transient, Message: noJSON}
	if ctx.Err() != nil {
		failed = &Error{Kind: Transient, Message: ctx.Err().Error(), err: ctx.Err()}
	}
	errors.As(err, &failed)
	failed.Verb, failed.Resource = verb, resource
	return failed
}

// guard is the transport below client-go. It sends the current token, and returns only successful answers
// that are complete and of bounded size. Everything else becomes an Error.
type guard struct{ *Cluster }

// RoundTrip implements http.RoundTripper.
func (g guard) RoundTrip(req *http.Request) (*http.Response, error) {
	token, err := g.bearer()
	if err != nil {
		return nil, err
	}
	if token != "" {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := g.transport.RoundTrip(req)
	if err != nil {
		return nil, transportError(req.Context(), err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, bodyLimit+1))
	switch {
	case err != nil:
		return nil, transportError(req.Context(), err)
	case len(text) > bodyLimit:
		return nil, &Error{Kind: Invalid, Status: resp.StatusCode, Message: fmt.Sprintf("the answer has more than %d MiB", bodyLimit>>20)}
	case resp.StatusCode/100 != 2: // includes redirects, because credentials must go only to the configured server
		return nil, refusal(resp.StatusCode, text, req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/secrets"), append([]string{token}, g.hidden...))
	}
	if items, all := objectsIn(text); items > mostObjects || all > mostInside {
		return nil, &Error{Kind: Invalid, Status: resp.StatusCode, Message: fmt.Sprintf("the answer has more than %d objects", mostObjects)}
	}
	resp.Body = io.NopCloser(bytes.NewReader(text))
	resp.Header.Set("Content-Type", runtime.ContentTypeJSON) // the body is decoded as JSON in any case
	return resp, nil
}

// objectsIn counts the objects in a JSON text, and the objects that are items of a list. It runs before
// decoding, because decoded objects may need hundreds of times the memory of their text.
func objectsIn(text []byte) (items, all int) {
	depth, inText := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{' || c == '[':
			if depth++; depth == 3 {
				items++
			}
			all++
		case c == '}' || c == ']':
			depth--
		}
	}
	return items, all
}
