// Package wire is AWS's protocols as the emulator speaks them: EC2's and the query
// protocol, which send forms and answer in XML, JSON with a target, and REST with
// JSON.
//
// A [Service] is a set of operations with a [Dialect], in which it words the errors
// that every service has. An [Operation] reads a request into a Go struct and runs;
// before that the request was held against AWS's model of the operation. A member that
// the model has and the operation does not read is refused, so an unknown parameter
// never has half an effect. An [Exchange] is one call with what it answers; a [Request]
// adds the service's part of the region, whose type the service chooses. Pages end in
// tokens that are bound to their operation, and a client token gets its first answer
// again.
//
// The package knows no service: what only one of them does stands there.
package wire

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/model"
)

// Effect says what an operation does to state.
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
	Checksums bool                                   // answers carry the CRC-32 of their bodies
	Flat      bool                                   // what a caller did wrong is always status 400
	ErrorType func(code string) string               // the __type of a code; nil: the code
	Fresh     func(rq *Exchange) bool                // a read that never answers what was; nil: none
	Conflict  func(rq *Exchange, about string) error // the answer when others change the same; nil: none
}

// Operation is one action of a service.
type Operation struct {
	Name   string
	Effect Effect
	Model  *model.Operation

	// handle parses and checks the request's form, then runs the operation.
	handle func(rq *Exchange) error
	// rehearses: run is called in a dry run too, and ends it.
	rehearses bool
}

// Rehearsing is the operation, whose run looks in a dry run for what would be refused,
// and ends it with [DryRun].
func (op *Operation) Rehearsing() *Operation {
	op.rehearses = true
	return op
}

// DryRun returns the error of a dry run that succeeds.
func DryRun() *Error {
	return Fail("DryRunOperation", "Request would have succeeded, but DryRun flag is set.")
}

// NewService returns the service that AWS's models call by a name.
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

// JSONOp is an operation of a JSON protocol: the body is decoded strictly into
// In and what run returns is the answer's body.
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
		// Encoded here, under the lock: out may point into the state.
		raw, err := json.Marshal(out)
		if err != nil {
			return fmt.Errorf("marshal answer of %s: %w", name, err)
		}
		rq.Reply = json.RawMessage(raw)
		return nil
	}}
}
