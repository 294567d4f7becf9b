package awsemu

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// protocol is a wire protocol of AWS.
type protocol int

const (
	protocolEC2      protocol = iota // form in, XML out, EC2's variant
	protocolQuery                    // form in, XML out
	protocolJSON                     // JSON 1.1, the operation in X-Amz-Target
	protocolRESTJSON                 // JSON, the operation in method and path
)

// effect says what an operation does to state.
type effect int

const (
	reads effect = iota
	writes
)

// service is one AWS service: its operations and its part in the life of a region.
type service struct {
	name      string // in the credential scope
	version   string // the API version that clients send
	namespace string // of XML answers
	target    string // prefix of X-Amz-Target
	protocol  protocol
	dialect   dialect
	ops       map[string]*operation
	routes    []*operation // REST operations, in matching order

	// timers are the functions of the service's timer kinds.
	timers map[string]timerFunc
	// seed fills the service's part of a new region. EC2 goes first.
	seed func(r *region)
	// restored rebuilds what is not saved (indexes) after a load or a clone.
	restored func(r *region)
	// instanceChanged is told of every change of an instance's state, after it.
	instanceChanged func(r *region, in *instance, from string)
}

// operation is one action of a service.
type operation struct {
	name   string
	effect effect
	void   bool // the query protocol's answer has no Result element

	// handle parses and checks the request's form, then runs the operation.
	handle func(rq *request) error

	method   string   // REST
	segments []string // REST path, with {label} segments
	queries  []string // REST query parameters that the operation knows
}

// register adds operations to the service.
func (sv *service) register(ops ...*operation) {
	if sv.ops == nil {
		sv.ops = map[string]*operation{}
	}
	for _, op := range ops {
		sv.ops[op.name] = op
		if op.segments != nil {
			sv.routes = append(sv.routes, op)
		}
	}
}

// queryOp is an operation of a form-based protocol. parse reads every parameter
// that the operation knows into a value; whatever it leaves unread is refused
// before run is called, so an unknown parameter has no effect.
func queryOp[In any](name string, e effect, parse func(p *params) In, run func(rq *request, in In) error) *operation {
	return &operation{name: name, effect: e, handle: func(rq *request) error {
		in := parse(rq.params)
		dryRun := false
		if rq.svc.protocol == protocolEC2 {
			dryRun = rq.params.boolean("DryRun")
		}
		if err := rq.params.finish(); err != nil {
			return err
		}
		if dryRun {
			return fail("DryRunOperation", "Request would have succeeded, but DryRun flag is set.")
		}
		return run(rq, in)
	}}
}

// voidOp marks an operation whose answer in the query protocol has no Result.
func voidOp(op *operation) *operation {
	op.void = true
	return op
}

// jsonOp is an operation of a JSON protocol: the body is decoded strictly into
// In and what run returns is the answer's body.
func jsonOp[In any](name string, e effect, run func(rq *request, in In) (any, error)) *operation {
	return &operation{name: name, effect: e, handle: func(rq *request) error {
		var in In
		if err := rq.decode(&in); err != nil {
			return err
		}
		out, err := run(rq, in)
		if err != nil {
			return err
		}
		// Encoded here, under the lock: out may point into the state.
		raw, err := json.Marshal(out)
		if err != nil {
			return fmt.Errorf("marshal answer of %s: %w", name, err)
		}
		rq.reply = json.RawMessage(raw)
		return nil
	}}
}

// restOp is a jsonOp reached by method and path. path holds {labels}, read with
// [request.label]; queries are the query parameters that the operation knows,
// read with [request.queryValue].
func restOp[In any](name string, e effect, method, path string, queries []string, run func(rq *request, in In) (any, error)) *operation {
	op := jsonOp(name, e, run)
	op.method = method
	op.segments = strings.Split(strings.TrimPrefix(path, "/"), "/")
	op.queries = queries
	return op
}

// match finds the REST operation for a request, and its path labels. The escaped
// path is matched, so that a label may hold an encoded slash.
func (sv *service) match(r *http.Request) (*operation, map[string]string) {
	path := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	for _, op := range sv.routes {
		if op.method != r.Method || len(op.segments) != len(path) {
			continue
		}
		if labels, ok := matchSegments(op.segments, path); ok {
			return op, labels
		}
	}
	return nil, nil
}
