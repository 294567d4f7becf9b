// Package dynamodb is the part of DynamoDB that weir's clients call: tables with a hash
// key and perhaps a range key, reads and writes of items with expressions, and
// transactions. It has no batches, no backups, no time to live, no secondary indexes, no
// streams and none of the parameters from before expressions.
//
// # Writes
//
// A write is prepared, tried and stored ([change]): what DynamoDB refuses is refused
// before anything changed, in one write as in a transaction of a hundred. Calls run one
// at a time, so a transaction never meets another: the front's script makes that fault.
//
// # Reads
//
// A scan meets items in the order of their hash keys' digests, which is no order to a
// caller, and a query in the order of the range key. Pages end after Limit items or
// 1 MB. The front's stale-read fault makes an eventually consistent read miss the
// latest writes.
//
// # Time
//
// Tables are made, changed and deleted on the emulator's clock. How many items a table has
// is counted every six hours.
//
// # Capacity
//
// Where the emulator throttles, each table has its capacity: provisioned units with five
// minutes of what was not used, or what a new table on demand has.
package dynamodb

import (
	"net/http"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/dynamodb/attr"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// Region is DynamoDB's part of a region.
type Region struct {
	*world.Region `json:"-"`

	Tables world.Table[*Table] // by name

	throttles bool
	buckets   map[string]*bucket
}

// Join connects the region, which is new or was read from JSON, with what all services
// share; throttles says whether tables have no more than their capacity.
func (r *Region) Join(base *world.Region, throttles bool) {
	r.Region, r.throttles, r.buckets = base, throttles, map[string]*bucket{}
}

// Table is a table with its items.
type Table struct {
	Name    string
	ID      string
	Status  string // CREATING, ACTIVE, UPDATING or DELETING
	Created time.Time
	Keys    []KeyAttribute // hash key, range key

	OnDemand      bool
	OnDemandSince time.Time
	ReadUnits     int64 `json:",omitempty"`
	WriteUnits    int64 `json:",omitempty"`

	Class     string `json:",omitempty"`
	Protected bool   `json:",omitempty"`
	KMSKey    string `json:",omitempty"` // ARN
	Tags      world.Tags
	Replicas  []Replica `json:",omitempty"`

	Items   world.Table[attr.Item] // by rowKey
	Counted Count
}

// KeyAttribute is an attribute of a table's key, of type S, N or B.
type KeyAttribute struct{ Name, Type string }

// Replica is a table's copy in another region: the emulator keeps only that it exists.
type Replica struct{ Region, Status string }

// Count is the number of items in a table at a time.
type Count struct {
	At    time.Time
	Items int
	Bytes int
}

// request is a call to the service.
type request = wire.Request[*Region]

// Service is the part of DynamoDB that keeps items.
func Service() *wire.Service {
	d := wire.JSONDialect("ValidationException")
	d.Throttled = throttled
	d.InternalFailed = func() *wire.Error { return wire.Fail("InternalServerError", "The request could not be processed") }
	d.TokenMismatch = func() *wire.Error {
		return wire.Fail("IdempotentParameterMismatchException", "The provided token is already in use with different parameters.")
	}
	d.UnknownAction = func(string, string) *wire.Error { return wire.Fail("UnknownOperationException", "") }
	d.TooLarge = func() *wire.Error {
		return &wire.Error{Code: "RequestEntityTooLarge", Message: "Request size exceeded", Status: http.StatusRequestEntityTooLarge}
	}
	sv := wire.NewService("dynamodb", d,
		wire.JSONOp("CreateTable", wire.Writes, createTable),
		wire.JSONOp("DescribeTable", wire.Reads, describeTable),
		wire.JSONOp("UpdateTable", wire.Writes, updateTable),
		wire.JSONOp("DeleteTable", wire.Writes, deleteTable),
		wire.JSONOp("DescribeTimeToLive", wire.Reads, describeTimeToLive),
		wire.JSONOp("PutItem", wire.Writes, writer("Put")),
		wire.JSONOp("UpdateItem", wire.Writes, writer("Update")),
		wire.JSONOp("DeleteItem", wire.Writes, writer("Delete")),
		wire.JSONOp("Query", wire.Reads, query),
		wire.JSONOp("Scan", wire.Reads, scan),
		wire.JSONOp("TransactGetItems", wire.Reads, transactGetItems),
		wire.JSONOp("TransactWriteItems", wire.Writes, transactWriteItems),
	)
	sv.MaxBody, sv.Checksums, sv.Flat = 16<<20, true, true
	sv.ErrorType, sv.Fresh, sv.Conflict = errorType, consistent, conflict
	return sv
}

// Timers has the events that happen later.
func Timers() map[string]func(*Region, string) {
	return map[string]func(*Region, string){
		timerTable: (*Region).finishTransition,
	}
}

// errorType puts a code into the namespace of those who answer it: DynamoDB or the
// framework before it.
func errorType(code string) string {
	switch code {
	case "ValidationException":
		return "com.amazon.coral.validate#" + code
	case "SerializationException", "UnknownOperationException", "MissingAuthenticationTokenException", "UnrecognizedClientException", "ExpiredTokenException", "AccessDeniedException":
		return "com.amazon.coral.service#" + code
	}
	return "com.amazonaws.dynamodb.v20120810#" + code
}

// table finds a table by its name or ARN, nil for none.
func (r *Region) table(name string) (*Table, error) {
	if short, ok := strings.CutPrefix(name, r.ARN("dynamodb", "table/")); ok {
		name = short
	}
	return r.Tables.Get(name), checkName(name)
}

// checkName refuses what no table can be called.
func checkName(name string) error {
	switch {
	case strings.HasPrefix(name, "arn:"):
		return attr.Invalid("Invalid TableArn: the emulator's tables are those of the caller's account and region")
	case len(name) < 3 || len(name) > 255:
		return attr.Invalid("TableName must be at least 3 characters long and at most 255 characters long")
	case !wire.ConsistsOf(name, wire.Alphanumeric+"_.-"):
		return attr.Invalid("1 validation error detected: Value '%s' at 'tableName' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+", name)
	}
	return nil
}

// described is table for calls about the table itself.
func (r *Region) described(name string) (*Table, error) {
	t, err := r.table(name)
	if t == nil && err == nil {
		err = wire.Fail("ResourceNotFoundException", "Requested resource not found: Table: %s not found", name)
	}
	return t, err
}

// open is table for calls about its items: it must be there.
func (r *Region) open(name string) (*Table, error) {
	t, err := r.table(name)
	if err == nil && (t == nil || t.Status == "CREATING" || t.Status == "DELETING") {
		err = wire.Fail("ResourceNotFoundException", "Requested resource not found")
	}
	return t, err
}
