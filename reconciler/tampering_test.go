package reconciler_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// tampering is an AWS that takes a member of a request and keeps another value of it,
// none, or its parts in another order.
type tampering struct {
	next              http.Handler
	operation, member string
	how               func(v any) (any, bool) // the value that is kept; false for none

	mu   sync.Mutex
	seen map[string]map[string]bool // the members of each operation
}

// The ways of a normalisation.
var tamperings = map[string]func(any) (any, bool){
	"drops":    func(any) (any, bool) { return nil, false },
	"fills":    func(v any) (any, bool) { return another(v), true },
	"reorders": func(v any) (any, bool) { return reversed(v), true },
}

func another(v any) any {
	switch v := v.(type) {
	case string:
		if n, err := strconv.Atoi(v); err == nil {
			return strconv.Itoa(n + 1)
		}
		switch v {
		case "true":
			return "false"
		case "false":
			return "true"
		}
		return v + "x"
	case bool:
		return !v
	case float64:
		return v + 1
	}
	return v
}

func reversed(v any) any {
	switch v := v.(type) {
	case []any:
		out := slices.Clone(v)
		slices.Reverse(out)
		return out
	case string:
		if parts := strings.Split(v, ","); len(parts) > 1 {
			slices.Reverse(parts)
			return strings.Join(parts, ",")
		}
	}
	return v
}

// tree is the members of a query request as JSON has them.
func queryTree(form url.Values) map[string]any {
	root := map[string]any{}
	for key, values := range form {
		at, parts := root, strings.Split(key, ".")
		for i, part := range parts {
			if i == len(parts)-1 {
				at[part] = values[0]
				break
			}
			child, ok := at[part].(map[string]any)
			if !ok {
				child = map[string]any{}
				at[part] = child
			}
			at = child
		}
	}
	return listed(root).(map[string]any)
}

var digits = regexp.MustCompile(`^\d+$`)

// listed makes lists of what has numbers for keys, those below "member" included.
func listed(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	if inner, one := m["member"].(map[string]any); one && len(m) == 1 {
		return map[string]any{"member": listed(inner)}
	}
	numbered := len(m) > 0
	for k := range m {
		m[k] = listed(m[k])
		numbered = numbered && digits.MatchString(k)
	}
	if !numbered {
		return m
	}
	out := make([]any, 0, len(m))
	for n := 1; n <= len(m); n++ {
		out = append(out, m[strconv.Itoa(n)])
	}
	return out
}

func flat(prefix string, v any, out url.Values) {
	switch v := v.(type) {
	case map[string]any:
		for k, child := range v {
			flat(strings.TrimPrefix(prefix+"."+k, "."), child, out)
		}
	case []any:
		for i, child := range v {
			flat(prefix+"."+strconv.Itoa(i+1), child, out)
		}
	case string:
		out.Set(prefix, v)
	}
}

// walk does something to each member, and returns the tree with what became of it.
func walk(path string, v any, do func(path string, v any) (any, bool)) (any, bool) {
	switch inner := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(inner)) {
			if child, kept := walk(strings.TrimPrefix(path+"."+k, "."), inner[k], do); kept {
				inner[k] = child
			} else {
				delete(inner, k)
			}
		}
	case []any:
		var out []any
		for _, child := range inner {
			if child, kept := walk(path+"[]", child, do); kept {
				out = append(out, child)
			}
		}
		v = out
	}
	if path == "" {
		return v, true
	}
	return do(path, v)
}

func (a *tampering) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if operation, tree, encode := parse(r, body); tree != nil {
		changed, _ := walk("", tree, func(path string, v any) (any, bool) {
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.seen[operation] == nil {
				a.seen[operation] = map[string]bool{}
			}
			a.seen[operation][path] = true
			if operation == a.operation && path == a.member {
				return a.how(v)
			}
			return v, true
		})
		body = encode(changed)
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	a.next.ServeHTTP(w, r)
}

// parse reads a request that writes; tree is nil for others.
func parse(r *http.Request, body []byte) (operation string, tree map[string]any, encode func(any) []byte) {
	if strings.Contains(r.Header.Get("Content-Type"), "form-urlencoded") {
		form, err := url.ParseQuery(string(body))
		operation = form.Get("Action")
		if err != nil || strings.HasPrefix(operation, "Describe") || strings.HasPrefix(operation, "Get") {
			return "", nil, nil
		}
		return operation, queryTree(form), func(v any) []byte {
			out := url.Values{}
			flat("", v, out)
			return []byte(out.Encode())
		}
	}
	if r.Method != http.MethodPost || r.Header.Get("X-Amz-Target") != "" || json.Unmarshal(body, &tree) != nil {
		return "", nil, nil
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	operation = parts[len(parts)-1]
	if parts[0] == "tags" {
		operation = "tags"
	}
	return operation, tree, func(v any) []byte {
		out, _ := json.Marshal(v) // it was JSON
		return out
	}
}

// through has weir reach the world by another endpoint.
func (w *world) through(a *tampering) {
	a.next, a.seen = w.srv, map[string]map[string]bool{}
	web := httptest.NewServer(a)
	w.t.Cleanup(web.Close)
	w.url = web.URL
	w.fresh()
}
