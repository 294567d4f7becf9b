package dynamo

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// errCondition says that a condition of a write was not met.
var errCondition = errors.New("a condition is not met")

// tried repeats a write until it succeeds or is refused for good. If the time runs out, the error contains
// the last refusal.
func (s *Store) tried(ctx context.Context, write func() error, passing func(error) bool) error {
	var why error
	for tries := 0; ; tries++ {
		err := write()
		if err == nil || errors.Is(err, errCondition) {
			return err
		}
		if why != nil && ctx.Err() != nil {
			return s.explain(why)
		}
		if why = err; !passing(err) || pause(ctx, tries) != nil {
			return s.explain(err)
		}
	}
}

// transact does a transaction, and retries after conflicts.
func (s *Store) transact(ctx context.Context, ops []types.TransactWriteItem) error {
	return s.tried(ctx, func() error {
		s.calls("TransactWriteItems")
		_, err := s.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: ops})
		var canceled *types.TransactionCanceledException
		if errors.As(err, &canceled) && failed(canceled) {
			return errCondition
		}
		return err
	}, func(err error) bool {
		var canceled *types.TransactionCanceledException
		var running *types.TransactionInProgressException
		return errors.As(err, &canceled) && collided(canceled) || errors.As(err, &running)
	})
}

// update changes one item, and retries after conflicts with transactions.
func (s *Store) update(ctx context.Context, in *dynamodb.UpdateItemInput) (out *dynamodb.UpdateItemOutput, err error) {
	err = s.tried(ctx, func() error {
		s.calls("UpdateItem")
		out, err = s.client.UpdateItem(ctx, in)
		var condition *types.ConditionalCheckFailedException
		if errors.As(err, &condition) {
			return errCondition
		}
		return err
	}, func(err error) bool {
		var conflict *types.TransactionConflictException
		return errors.As(err, &conflict)
	})
	return out, err
}

// failed reports whether a condition was not met, whatever other reasons exist.
func failed(c *types.TransactionCanceledException) bool {
	return slices.ContainsFunc(c.CancellationReasons, func(r types.CancellationReason) bool {
		return aws.ToString(r.Code) == "ConditionalCheckFailed"
	})
}

// collided reports whether a transaction failed only because of other requests.
func collided(c *types.TransactionCanceledException) bool {
	return !slices.ContainsFunc(c.CancellationReasons, func(r types.CancellationReason) bool {
		switch aws.ToString(r.Code) {
		case "", "None", "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded":
			return false
		}
		return true
	})
}

// pause waits before another try, longer after every failure.
func pause(ctx context.Context, tries int) error {
	timer := time.NewTimer(rand.N(min(10*time.Millisecond<<min(tries, 6), 300*time.Millisecond)) + time.Millisecond) //nolint:gosec // no secret
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
