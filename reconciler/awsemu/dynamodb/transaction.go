package dynamodb

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/dynamodb/attr"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

const (
	// tokenLife is the time for which a transaction's token is remembered.
	tokenLife      = 10 * time.Minute
	maxTransaction = 4 << 20
)

var (
	errTooLarge = attr.Invalid("Transaction payload size cannot exceed %d bytes", maxTransaction)
	errTwice    = attr.Invalid("Transaction request cannot include multiple operations on one item")
)

// reason is the reason for which one part cancels a transaction.
type reason struct {
	Code    string
	Message string    `json:",omitempty"`
	Item    attr.Item `json:",omitempty"`
}

// reasonOf returns the reason for the error of a part.
func reasonOf(err error) reason {
	var e *wire.Error
	if !errors.As(err, &e) {
		return reason{Code: "None"}
	}
	item, _ := e.Extra["Item"].(attr.Item)
	code := map[string]string{
		"ConditionalCheckFailedException": "ConditionalCheckFailed", "ValidationException": "ValidationError", "TransactionConflictException": "TransactionConflict",
		"ProvisionedThroughputExceededException": "ProvisionedThroughputExceeded", "ThrottlingException": "ThrottlingError",
	}[e.Code]
	return reason{code, e.Message, item}
}

// cancelled returns the error of a transaction with a failed part, or nil if none failed.
func cancelled(reasons []reason) error {
	var codes []string
	failed := false
	for _, why := range reasons {
		codes = append(codes, why.Code)
		failed = failed || why.Code != "None"
	}
	if !failed {
		return nil
	}
	message := "Transaction cancelled, please refer cancellation reasons for specific reasons [" + strings.Join(codes, ", ") + "]"
	return wire.Fail("TransactionCanceledException", "%s", message).With("Message", message).With("CancellationReasons", reasons)
}

// conflict returns the error of a call about items of another transaction. In a transaction, it affects the
// parts that contain about, or the first part.
func conflict(rq *wire.Exchange, about string) error {
	ongoing := wire.Fail("TransactionConflictException", "Transaction is ongoing for the item")
	switch rq.Operation.Name {
	case "PutItem", "UpdateItem", "DeleteItem":
		return ongoing
	case "TransactWriteItems", "TransactGetItems":
		var in struct{ TransactItems []json.RawMessage }
		if err := json.Unmarshal(rq.Body, &in); err != nil {
			return nil
		}
		reasons := make([]reason, len(in.TransactItems))
		for i, part := range in.TransactItems {
			if reasons[i].Code = "None"; about == "" && i == 0 || about != "" && strings.Contains(string(part), about) {
				reasons[i] = reasonOf(ongoing)
			}
		}
		return cancelled(reasons)
	}
	return nil
}

type transactWriteItemsInput struct {
	TransactItems               []map[string]*write
	ClientRequestToken          string
	ReturnConsumedCapacity      string
	ReturnItemCollectionMetrics string
}

func transactWriteItems(rq *request, in transactWriteItemsInput) (any, error) {
	err := rq.IdempotentFor(tokenLife, in.ClientRequestToken, func(string) bool { return true }, func() (string, error) {
		out, err := rq.Region.transact(in)
		rq.Reply = out
		return "", err
	})
	return rq.Reply, err
}

func (r *Region) transact(in transactWriteItemsInput) (any, error) {
	var changes []*change
	seen := map[string]bool{}
	size := 0 // size of the request, whatever it changes
	for _, item := range in.TransactItems {
		if len(item) != 1 {
			return nil, attr.Invalid("TransactItems can only contain one of Check, Put, Update or Delete")
		}
		for kind, w := range item {
			if w == nil {
				w = &write{}
			}
			c, err := r.prepare(kind, *w)
			switch {
			case err != nil:
				return nil, err
			case seen[c.table.ID+c.row]:
				return nil, errTwice
			}
			seen[c.table.ID+c.row] = true
			changes = append(changes, c)
			size += w.Item.Size() + w.Key.Size() + w.ExpressionAttributeValues.Size()
		}
	}
	if size > maxTransaction {
		return nil, errTooLarge
	}
	reasons := make([]reason, len(changes))
	for i := range reasons {
		reasons[i].Code = "None"
	}
	// An invalid part cancels the transaction before any condition is checked.
	if i := slices.IndexFunc(changes, func(c *change) bool { return c.invalid != nil }); i >= 0 {
		reasons[i] = reasonOf(changes[i].invalid)
		return nil, cancelled(reasons)
	}
	for i, c := range changes {
		err := c.try()
		if slow := r.spend(c.table, 2*c.units(), true); slow != nil {
			err = slow
		}
		reasons[i] = reasonOf(err)
	}
	if err := cancelled(reasons); err != nil {
		return nil, err
	}
	var used consumption
	for _, c := range changes {
		r.store(c)
		used.write(c.table, 2*c.units(), true)
	}
	out := map[string]any{}
	used.into(out, in.ReturnConsumedCapacity, false)
	return out, nil
}

type transactGetItemsInput struct {
	TransactItems          []struct{ Get get }
	ReturnConsumedCapacity string
}

func transactGetItems(rq *request, in transactGetItemsInput) (any, error) {
	r := rq.Region
	seen := map[string]bool{}
	var used consumption
	var reasons []reason
	answers := []map[string]any{}
	size := 0
	for _, one := range in.TransactItems {
		t, row, projection, err := r.find(one.Get)
		switch {
		case err != nil:
			return nil, err
		case seen[t.ID+row]:
			return nil, errTwice
		}
		seen[t.ID+row] = true
		item := t.Items.Get(row)
		count := 2 * readUnits(item.Size(), true)
		reasons = append(reasons, reasonOf(r.spend(t, count, false)))
		used.read(t, count, true)
		size += item.Size()
		answer := map[string]any{}
		if item != nil {
			answer["Item"] = projection.Of(item)
		}
		answers = append(answers, answer)
	}
	if size > maxTransaction {
		return nil, errTooLarge
	}
	if err := cancelled(reasons); err != nil {
		return nil, err
	}
	out := map[string]any{"Responses": answers}
	used.into(out, in.ReturnConsumedCapacity, false)
	return out, nil
}
