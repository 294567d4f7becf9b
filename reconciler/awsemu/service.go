package awsemu

import (
	"encoding/json"
	"fmt"

	"github.com/weir-gitops/weir/reconciler/awsemu/model"
)

// effect says what an operation does to state.
type effect int

const (
	reads effect = iota
	writes
)

// service is one AWS service: its operations and its part in the life of a region.
type service struct {
	*model.Service // its name, version, protocol and shapes
	dialect        dialect
	ops            map[string]*operation

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
	model  *model.Operation

	// handle parses and checks the request's form, then runs the operation.
	handle func(rq *request) error
}

// register adds operations to the service.
func (sv *service) register(ops ...*operation) {
	if sv.ops == nil {
		sv.ops = map[string]*operation{}
	}
	for _, op := range ops {
		op.model = sv.Operations[op.name]
		sv.ops[op.name] = op
	}
}

// queryOp is an operation of a form-based protocol. parse reads every parameter
// that the operation knows into a value; whatever it leaves unread is refused
// before run is called, so an unknown parameter has no effect.
func queryOp[In any](name string, e effect, parse func(p *params) In, run func(rq *request, in In) error) *operation {
	return &operation{name: name, effect: e, handle: func(rq *request) error {
		in := parse(rq.params)
		dryRun := false
		if rq.svc.Protocol == "ec2" {
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
