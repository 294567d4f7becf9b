package render

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"go.yaml.in/yaml/v3"
)

// printed is the printed form of a Set. It does not contain texts of user data.
type printed struct {
	Pools []printedPool `json:"pools"`
	// Rollouts are the FleetRollouts. In JSON they have origins like pools.
	Rollouts []map[string]any `json:"rollouts,omitempty"`
	Clusters []intent.Cluster `json:"clusters,omitempty"`
	Ignored  []intent.Ignored `json:"ignored,omitempty"`
}

// printedPool is a pool with the places that set its fields, by the path of the field inside the pool.
type printedPool struct {
	intent.Pool
	Origins map[string]diag.Position `json:"origins,omitempty"`
}

// IntentsJSON prints the intents as JSON. Every pool has a member origins, which maps fields to the places
// that set them, after readable converted the place. Defaults have no place.
func (r *Result) IntentsJSON(readable func(diag.Position) diag.Position) ([]byte, error) {
	out, err := r.printed()
	if err != nil {
		return nil, err
	}
	for i := range out.Rollouts {
		f := &r.Set.Rollouts[i]
		doc, err := rolloutNode(f)
		if err != nil {
			return nil, err
		}
		origins := map[string]diag.Position{}
		r.rolloutOrigins(f, doc, func(path intent.Path, _ *yaml.Node, at diag.Position) { origins[path.String()] = readable(at) })
		out.Rollouts[i]["origins"] = origins
	}
	for i := range out.Pools {
		p := &out.Pools[i]
		doc, err := nodeOf(p.Pool)
		if err != nil {
			return nil, err
		}
		p.Origins = map[string]diag.Position{}
		r.eachOrigin(&p.Pool, doc, func(path intent.Path, _ *yaml.Node, at diag.Position) { p.Origins[path.String()] = readable(at) })
	}
	text, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("print intents: %w", err)
	}
	return append(text, '\n'), nil
}

// IntentsYAML prints the intents as YAML. A comment next to a field has the place that set it, after readable
// converted the place. Defaults have no place.
func (r *Result) IntentsYAML(readable func(diag.Position) diag.Position) ([]byte, error) {
	out, err := r.printed()
	if err != nil {
		return nil, err
	}
	doc, err := nodeOf(out)
	if err != nil {
		return nil, err
	}
	for i, n := range member(doc, "pools").Content {
		r.eachOrigin(&out.Pools[i].Pool, n, func(_ intent.Path, value *yaml.Node, at diag.Position) { value.LineComment = readable(at).String() })
	}
	for i, n := range member(doc, "rollouts").Content {
		r.rolloutOrigins(&r.Set.Rollouts[i], n, func(_ intent.Path, value *yaml.Node, at diag.Position) { value.LineComment = readable(at).String() })
	}
	var buf bytes.Buffer
	enc := yaml.NewEncoder(&buf)
	enc.SetIndent(2)
	if err := enc.Encode(doc); err != nil {
		return nil, fmt.Errorf("print intents: %w", err)
	}
	return buf.Bytes(), nil
}

func (r *Result) printed() (printed, error) {
	rollouts, err := r.printedRollouts()
	out := printed{Rollouts: rollouts, Pools: []printedPool{}, Clusters: r.Set.Clusters, Ignored: r.Set.Ignored}
	for _, p := range r.Set.Pools {
		out.Pools = append(out.Pools, printedPool{Pool: p})
	}
	return out, err
}

// nodeOf converts a value to YAML nodes through JSON, which keeps the order and names of the members.
func nodeOf(v any) (*yaml.Node, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("print intents: %w", err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("print intents: %w", err)
	}
	n := doc.Content[0]
	plain(n)
	return n, nil
}

// plain removes the flow style and quotes of JSON.
func plain(n *yaml.Node) {
	if len(n.Content) > 0 || n.Kind == yaml.ScalarNode {
		n.Style = 0
	}
	for _, c := range n.Content {
		plain(c)
	}
}

func member(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return &yaml.Node{}
}

// eachOrigin visits the scalars of a printed pool that have a known origin.
func (r *Result) eachOrigin(p *intent.Pool, n *yaml.Node, visit func(intent.Path, *yaml.Node, diag.Position)) {
	eachScalar(n, nil, func(path intent.Path, n *yaml.Node) {
		for _, f := range r.manifests().manifestFields(p, path) {
			if at, ok := r.Origin(f.ref, f.path); ok {
				visit(path, n, at)
				return
			}
		}
	})
}
