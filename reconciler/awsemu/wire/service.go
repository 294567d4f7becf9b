// Package wire implements AWS's protocols for the emulator: EC2's and the query protocol, which receive
// forms and answer in XML, JSON with a target, and REST with JSON.
//
// A [Service] is a set of operations with a [Dialect], which words the errors that all services have. An
// [Operation] reads a request into a Go struct and runs. Before that, the request is checked against AWS's
// model of the operation. A member of the model that the operation does not read is refused, so an unknown
// parameter never has a partial effect. An [Exchange] is one call with its answer. A [Request] adds the
// service's part of the region, whose type the service chooses. Page tokens are bound to their operation,
// and a repeated client token gets the first answer again.
//
// The package does not depend on any service. The code that only one service needs is in that service's
// package.
package wire

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/model"
)

// Effect is the effect of an operation on state.
type Effect int

const (
	Reads Effect = iota
	Writes
)

// Service is one AWS service and its operations.
type Service struct {
	*model.Service // its name, version, protocol and shapes
	Dialect        Dialect
	Ops            map[string]*Operation

	MaxBody   int                                    // the largest body of a request, in bytes; 0: 1 MiB
	Checksums bool                                   // answers include the CRC-32 of their bodies
	Flat      bool                                   // the status of every client error is 400
	ErrorType func(code string) string               // the __type of a code; nil: the code
	Fresh     func(rq *Exchange) bool                // reports whether a read must return the current state; nil: none must
	Conflict  func(rq *Exchange, about string) error // the error for concurrent changes of the same resource; nil: none
}

// Operation is one action of a service.
type Operation struct {
	Name   string
	Effect Effect
	Model  *model.Operation

	// handle parses and checks the request's form, then runs the operation.
	handle func(rq *Exchange) error
	// rehearses means that a dry run also calls run, which ends the dry run.
	rehearses bool
}

// Rehearsing marks the operation so that a dry run calls its run function, which checks what would be
// refused and ends the dry run with [DryRun].
func (op *Operation) Rehearsing() *Operation {
	op.rehearses = true
	return op
}

// DryRun returns the error of a dry run that succeeds.
func DryRun() *Error {
	return Fail("DryRunOperation", "Request would have succeeded, but DryRun flag is set.")
}

// NewService returns the service with the name in AWS's models.
func NewService(name string, d Dialect, ops ...*Operation) *Service {
	sv := &Service{Service: model.Services()[name], Dialect: d, Ops: map[string]*Operation{}}
	for _, op := range ops {
		op.Model = sv.Operations[op.Name]
		sv.Ops[op.Name] = op
	}
	return sv
}

// FormOp is an operation of a form-based protocol: its parameters are read into In. If In has a
// method Check, that runs before a dry run ends, and before run. If In is [Data], it has the whole
// request.
func FormOp[R, In any](name string, e Effect, run func(rq *Request[R], in In) error) *Operation {
	return &Operation{Name: name, Effect: e, handle: func(rq *Exchange) error {
		var in In
		b := &binding{op: rq.Operation.Model, dialect: rq.Service.Dialect}
		if err := b.value(rq.Form.root, b.op.In, reflect.ValueOf(&in).Elem(), ""); err != nil {
			return err
		}
		if c, ok := any(&in).(interface{ Check() error }); ok {
			if err := c.Check(); err != nil {
				return err
			}
		}
		if rq.Service.Protocol == "ec2" && strings.EqualFold(rq.Form.Get("DryRun"), "true") && !rq.Operation.rehearses {
			return DryRun()
		}
		return run(&Request[R]{rq, rq.Part.(R)}, in)
	}}
}

// JSONOp returns an operation of a JSON protocol. The body is strictly decoded into In, and the result of
// run is the answer's body.
func JSONOp[R, In any](name string, e Effect, run func(rq *Request[R], in In) (any, error)) *Operation {
	return &Operation{Name: name, Effect: e, handle: func(rq *Exchange) error {
		var in In
		if err := rq.decode(&in); err != nil {
			return err
		}
		out, err := run(&Request[R]{rq, rq.Part.(R)}, in)
		if err != nil {
			return err
		}
		// Marshal here, under the lock, because out may refer to the state.
		raw, err := json.Marshal(out)
		if err != nil {
			return fmt.Errorf("marshal answer of %s: %w", name, err)
		}
		rq.Reply = json.RawMessage(raw)
		return nil
	}}
}
