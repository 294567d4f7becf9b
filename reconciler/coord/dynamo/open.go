package dynamo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"

	"github.com/weir-gitops/weir/reconciler/awscloud/httpbody"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/partition"
	"github.com/weir-gitops/weir/render/lazyregexp"
)

// Actions lists the API actions that a member uses on the table.
var Actions = []string{
	"dynamodb:ConditionCheckItem", "dynamodb:DeleteItem", "dynamodb:DescribeTable", "dynamodb:GetItem",
	"dynamodb:PutItem", "dynamodb:Query", "dynamodb:UpdateItem",
}

// Statement returns the IAM policy statement that allows the Actions.
func Statement(tableARN string) string {
	data, err := json.MarshalIndent(map[string]any{"Effect": "Allow", "Action": Actions, "Resource": tableARN}, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// Config identifies the table.
type Config struct {
	Instance, Table, Region, EndpointURL string
	// Clock is the observer's clock. It defaults to this machine's.
	Clock coord.Clock
}

// Open checks the table. Its error says what to do if the table cannot be used.
func Open(ctx context.Context, c Config) (*Store, error) {
	var options []func(*config.LoadOptions) error
	if c.Region != "" {
		options = append(options, config.WithRegion(c.Region))
	}
	// Only the session retries, because it knows whether a write was done.
	options = append(options, config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }), config.WithLogger(logging.Nop{}))
	conf, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("dynamodb: %w", err)
	}
	client := dynamodb.NewFromConfig(conf, func(o *dynamodb.Options) {
		o.HTTPClient = httpbody.Client{Next: o.HTTPClient} // otherwise answers of a fast table are lost
		if c.EndpointURL != "" {
			o.BaseEndpoint = &c.EndpointURL
		}
	})
	if conf.Region == "" {
		return nil, errors.New("dynamodb: no region is given: set region")
	}
	return New(ctx, client, c)
}

// New is like Open, with a client. The client must not retry.
func New(ctx context.Context, client *dynamodb.Client, c Config) (*Store, error) {
	if c.Clock == nil {
		c.Clock = coord.Machine{}
	}
	region := client.Options().Region
	s := &Store{client: client, table: c.Table, instance: c.Instance, clock: c.Clock, looked: c.Clock.Now(), calls: func(string) {}, seen: map[string]sighting{}}
	s.explain = func(err error) error { return explain(err, c.Table, region) }
	out, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &c.Table})
	if err != nil {
		return nil, s.explain(err)
	}
	if err := check(out.Table, region); err != nil {
		return nil, err
	}
	if id := aws.ToString(out.Table.TableId); id != "" {
		s.tableID = "." + strings.ReplaceAll(id, "-", "")[:min(12, len(strings.ReplaceAll(id, "-", "")))]
	}
	return s, s.own(ctx)
}

// OtherInstanceError says that a table belongs to another instance.
type OtherInstanceError struct{ Table, Has, Want string }

// Error returns both names and what to do.
func (e *OtherInstanceError) Error() string {
	return fmt.Sprintf("table %s belongs to instance %q, and this is instance %q: give each instance a table of its own", e.Table, e.Has, e.Want)
}

// own fails if the table belongs to another instance.
func (s *Store) own(ctx context.Context) error {
	p, err := s.poll(ctx)
	if err != nil {
		return err
	}
	if p.instance != "" && p.instance != s.instance {
		return &OtherInstanceError{s.table, p.instance, s.instance}
	}
	return nil
}

// check returns why a table cannot be used. If the table is still being created, the error is a
// coord.AwayError.
func check(t *types.TableDescription, region string) error {
	name := aws.ToString(t.TableName)
	kinds := map[string]types.ScalarAttributeType{}
	for _, a := range t.AttributeDefinitions {
		kinds[aws.ToString(a.AttributeName)] = a.AttributeType
	}
	var keys []string
	for _, k := range t.KeySchema {
		n := aws.ToString(k.AttributeName)
		keys = append(keys, fmt.Sprintf("%s (%s, %s)", n, k.KeyType, kinds[n]))
	}
	if want := []string{"pk (HASH, S)", "sk (RANGE, S)"}; !slices.Equal(keys, want) {
		return fmt.Errorf("table %s has the keys %s, and weir needs %s: %s", name, strings.Join(keys, " and "), strings.Join(want, " and "), create(name+"-weir", region))
	}
	if len(t.Replicas) > 0 || t.GlobalTableVersion != nil {
		var regions []string
		for _, r := range t.Replicas {
			regions = append(regions, aws.ToString(r.RegionName))
		}
		return fmt.Errorf("table %s has replicas in other regions (%s), which do not see each other's writes: use a table without replicas", name, strings.Join(regions, ", "))
	}
	if t.TableStatus == types.TableStatusCreating {
		return &coord.AwayError{Err: fmt.Errorf("table %s is being created", name)}
	}
	if t.TableStatus != types.TableStatusActive && t.TableStatus != types.TableStatusUpdating {
		return fmt.Errorf("table %s is %s: wait until it is ACTIVE", name, t.TableStatus)
	}
	return nil
}

// lookEvery is the time between checks of a table in use. lookFor bounds one check, because polls wait for
// it.
const lookEvery, lookFor = time.Minute, time.Second

// checkTable checks whether the table can still be used. A failed check changes nothing.
func (s *Store) checkTable(ctx context.Context) {
	now := s.clock.Now()
	s.mu.Lock()
	due := now.AtLeast(s.looked) >= lookEvery
	if due {
		s.looked = now
	}
	s.mu.Unlock()
	if !due {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	s.calls("DescribeTable")
	out, err := s.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &s.table})
	if err != nil || out.Table == nil {
		return
	}
	err = check(out.Table, s.client.Options().Region)
	s.mu.Lock()
	s.unfit = err
	s.mu.Unlock()
}

// checkUsable fails while the table must not be used.
func (s *Store) checkUsable() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unfit
}

// create describes how to create the table.
func create(table, region string) string {
	return fmt.Sprintf("create it with CloudFormation from deploy/coordination/table.yaml, or: aws dynamodb create-table --region %s --table-name %s --billing-mode PAY_PER_REQUEST"+
		" --attribute-definitions AttributeName=pk,AttributeType=S AttributeName=sk,AttributeType=S --key-schema AttributeName=pk,KeyType=HASH AttributeName=sk,KeyType=RANGE", region, table)
}

// explain adds to an error what can be done about it.
func explain(err error, table, region string) error {
	var missing *types.ResourceNotFoundException
	var api smithy.APIError
	unanswered := !errors.As(err, &api) || api.ErrorFault() == smithy.FaultServer || throttled(err)
	switch giver := credentials(err); {
	case giver != "" && unanswered:
		return &coord.AwayError{Err: fmt.Errorf("dynamodb: %s gives no credentials for table %s: %w", giver, table, err)}
	case giver != "":
		return fmt.Errorf("dynamodb: %s gives no credentials for table %s: let the role's trust policy allow weir's identity, and check that the identity's credentials have not expired: %w", giver, table, err)
	case errors.As(err, &missing):
		return fmt.Errorf("there is no table %s in %s: %s: %w", table, region, create(table, region), err)
	case api != nil && strings.HasPrefix(api.ErrorCode(), "AccessDenied"):
		arn := fmt.Sprintf("arn:%s:dynamodb:%s:*:table/%s", partitionOf(api.ErrorMessage(), region), region, table)
		return fmt.Errorf("dynamodb: %w: add this statement to the role's policy:\n%s", err, Statement(arn))
	case throttled(err):
		return &coord.AwayError{Err: fmt.Errorf("dynamodb: table %s is throttled: give it more capacity, or use on-demand capacity (aws dynamodb update-table --region %s --table-name %[1]s"+
			" --billing-mode PAY_PER_REQUEST): %[3]w", table, region, err)}
	case unanswered: // or with an unexpected answer
		return &coord.AwayError{Err: fmt.Errorf("dynamodb: %w", err)}
	}
	return fmt.Errorf("dynamodb: %w", err)
}

// credentials returns the service that failed to provide credentials for a call. It is empty if the call
// itself failed.
func credentials(err error) string {
	var call, giver *smithy.OperationError
	if errors.As(err, &call) && errors.As(call.Err, &giver) {
		return giver.ServiceID
	}
	return ""
}

// named matches an ARN in AWS's message about a refusal: the caller's or the table's.
var named = lazyregexp.New(`\barn:(aws[a-z-]*):`)

// partitionOf returns the partition of the table, from AWS's refusal or else from the region.
func partitionOf(refusal, region string) string {
	if m := named.FindStringSubmatch(refusal); m != nil {
		return m[1]
	}
	return partition.Of(region).ID
}

// throttled reports whether a call exceeded the rate limit of the table or the account.
func throttled(err error) bool {
	codes := []string{"ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded", "ProvisionedThroughputExceeded", "ThrottlingError"}
	var canceled *types.TransactionCanceledException
	if errors.As(err, &canceled) {
		return slices.ContainsFunc(canceled.CancellationReasons, func(r types.CancellationReason) bool { return slices.Contains(codes, aws.ToString(r.Code)) })
	}
	var api smithy.APIError
	return errors.As(err, &api) && slices.Contains(codes, api.ErrorCode())
}

// tooLarge reports whether a read exceeded the size limit of an answer.
func tooLarge(err error) bool {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return false
	}
	var canceled *types.TransactionCanceledException
	if errors.As(err, &canceled) {
		return slices.ContainsFunc(canceled.CancellationReasons, func(r types.CancellationReason) bool {
			return aws.ToString(r.Code) == "ValidationError"
		})
	}
	return api.ErrorCode() == "ValidationException"
}
