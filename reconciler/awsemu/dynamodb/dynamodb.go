// Package dynamodb implements the part of DynamoDB that weir's clients call: tables with a hash key and
// optionally a range key, reads and writes of items with expressions, and transactions. It has no batches,
// backups, time to live, secondary indexes, streams or legacy parameters.
//
// # Writes
//
// A write is prepared, tried and stored ([change]). So an error occurs before anything changes, both for a
// single write and for a transaction of a hundred. Calls run one at a time, so transactions never conflict;
// a fault in package awsemu simulates conflicts.
//
// # Reads
//
// A scan returns items in the order of their hash keys' digests, which looks random to a caller, and a query
// in the order of the range key. Pages end after Limit items or 1 MB. The stale-read fault of package awsemu
// makes an eventually consistent read miss the latest writes.
//
// # Time
//
// Tables are made, changed and deleted on the emulator's clock. The number of a table's items is updated
// every six hours.
//
// # Capacity
//
// If the emulator throttles, each table has a capacity: provisioned units with five minutes of unused
// capacity, or the capacity of a new on-demand table.
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

// Join connects the region, which is new or was read from JSON, with the part that all services share.
// throttles limits tables to their capacity.
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

// Replica is a table's copy in another region. The emulator stores only that it exists.
type Replica struct{ Region, Status string }

// Count is the number of a table's items at a time.
type Count struct {
	At    time.Time
	Items int
	Bytes int
}

// request is a call to the service.
type request = wire.Request[*Region]

// Service returns the item and table operations of DynamoDB.
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

// Timers returns the timed events, by kind.
func Timers() map[string]func(*Region, string) {
	return map[string]func(*Region, string){
		timerTable: (*Region).finishTransition,
	}
}

// errorType adds the namespace to an error code. DynamoDB and the framework in front of it have different
// namespaces.
func errorType(code string) string {
	switch code {
	case "ValidationException":
		return "com.amazon.coral.validate#" + code
	case "SerializationException", "UnknownOperationException", "MissingAuthenticationTokenException", "UnrecognizedClientException", "ExpiredTokenException", "AccessDeniedException":
		return "com.amazon.coral.service#" + code
	}
	return "com.amazonaws.dynamodb.v20120810#" + code
}

// table finds a table by its name or ARN. It returns nil if none exists.
func (r *Region) table(name string) (*Table, error) {
	if short, ok := strings.CutPrefix(name, r.ARN("dynamodb", "table/")); ok {
		name = short
	}
	return r.Tables.Get(name), checkName(name)
}

// checkName refuses invalid table names.
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

// described finds a table for calls about the table itself.
func (r *Region) described(name string) (*Table, error) {
	t, err := r.table(name)
	if t == nil && err == nil {
		err = wire.Fail("ResourceNotFoundException", "Requested resource not found: Table: %s not found", name)
	}
	return t, err
}

// open finds a table for calls about its items. The table must be usable.
func (r *Region) open(name string) (*Table, error) {
	t, err := r.table(name)
	if err == nil && (t == nil || t.Status == "CREATING" || t.Status == "DELETING") {
		err = wire.Fail("ResourceNotFoundException", "Requested resource not found")
	}
	return t, err
}
