package dynamodb

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/dynamodb/attr"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

const (
	timerTable = "dynamodb.table"
	// countEvery is the interval at which AWS counts a table's items.
	countEvery = 6 * time.Hour
	onDemand   = "PAY_PER_REQUEST"
)

type keyElement struct{ AttributeName, KeyType string }

type attributeDefinition struct{ AttributeName, AttributeType string }

type throughput struct{ ReadCapacityUnits, WriteCapacityUnits int64 }

type createTableInput struct {
	TableName                 string
	AttributeDefinitions      []attributeDefinition
	KeySchema                 []keyElement
	BillingMode               string
	ProvisionedThroughput     *throughput
	DeletionProtectionEnabled bool
	TableClass                string
	SSESpecification          struct {
		Enabled        bool
		SSEType        string
		KMSMasterKeyId string //nolint:revive // the name on the wire
	}
	StreamSpecification    struct{ StreamEnabled bool }
	Tags                   []tag
	LocalSecondaryIndexes  []any
	GlobalSecondaryIndexes []any
}

func createTable(rq *request, in createTableInput) (any, error) {
	r := rq.Region
	keys, err := in.keys()
	if err != nil {
		return nil, err
	}
	t := &Table{Name: in.TableName, Status: "CREATING", Created: r.Now(), Keys: keys, Class: in.TableClass, Protected: in.DeletionProtectionEnabled, Counted: Count{At: r.Now()}}
	if err := t.bill(in.BillingMode, in.ProvisionedThroughput, r.Now()); err != nil {
		return nil, err
	}
	if in.SSESpecification.Enabled {
		t.KMSKey = r.ARN("kms", "alias/aws/dynamodb")
		if in.SSESpecification.KMSMasterKeyId != "" {
			t.KMSKey = in.SSESpecification.KMSMasterKeyId
		}
	}
	if err := t.tag(in.Tags); err != nil {
		return nil, err
	}
	switch {
	case r.Tables.Has(t.Name):
		return nil, wire.Fail("ResourceInUseException", "Table already exists: %s", t.Name)
	case r.Tables.Len() >= r.Quota("dynamodb-tables"):
		return nil, wire.Fail("LimitExceededException", "Subscriber limit exceeded: Account-level tables limit of %d reached", r.Quota("dynamodb-tables"))
	}
	t.ID = r.NewUUID("table")
	r.Tables.Put(t.Name, t)
	r.settleLater(t)
	return map[string]any{"TableDescription": r.description(t)}, nil
}

// keys returns the keys of the new table.
func (in *createTableInput) keys() ([]KeyAttribute, error) {
	if err := checkName(in.TableName); err != nil {
		return nil, err
	}
	switch {
	case len(in.LocalSecondaryIndexes)+len(in.GlobalSecondaryIndexes) > 0:
		return nil, attr.Invalid("One or more parameter values were invalid: The emulator's tables have no secondary indexes")
	case in.StreamSpecification.StreamEnabled:
		return nil, attr.Invalid("One or more parameter values were invalid: The emulator's tables have no streams")
	case len(in.KeySchema) == 0:
		return nil, attr.Invalid("One or more parameter values were invalid: KeySchema must be specified")
	case len(in.KeySchema) > 2:
		return nil, attr.Invalid("Key Schema too big.  Key Schema must at most consist of the hash and range key of a table")
	case in.KeySchema[0].KeyType != "HASH":
		return nil, attr.Invalid("Invalid KeySchema: The first KeySchemaElement is not a HASH key type")
	case len(in.KeySchema) == 2 && in.KeySchema[1].KeyType != "RANGE":
		return nil, attr.Invalid("Invalid KeySchema: The second KeySchemaElement is not a RANGE key type")
	case len(in.KeySchema) == 2 && in.KeySchema[0].AttributeName == in.KeySchema[1].AttributeName:
		return nil, attr.Invalid("Both the Hash Key and the Range Key element in the KeySchema have the same name")
	}
	seen := map[string]bool{}
	for _, d := range in.AttributeDefinitions {
		if seen[d.AttributeName] {
			return nil, attr.Invalid("Cannot have two attributes with the same name: Duplicate AttributeName: %s", d.AttributeName)
		}
		seen[d.AttributeName] = true
	}
	var keys []KeyAttribute
	for _, element := range in.KeySchema {
		i := slices.IndexFunc(in.AttributeDefinitions, func(d attributeDefinition) bool { return d.AttributeName == element.AttributeName })
		if i < 0 {
			return nil, attr.Invalid("One or more parameter values were invalid: Some index key attributes are not defined in AttributeDefinitions. Keys: [%s], AttributeDefinitions: %s", element.AttributeName, defined(in.AttributeDefinitions))
		}
		keys = append(keys, KeyAttribute{element.AttributeName, in.AttributeDefinitions[i].AttributeType})
	}
	if len(keys) != len(in.AttributeDefinitions) {
		return nil, attr.Invalid("One or more parameter values were invalid: Number of attributes in KeySchema does not exactly match number of attributes defined in AttributeDefinitions")
	}
	return keys, nil
}

func defined(definitions []attributeDefinition) string {
	var names []string
	for _, d := range definitions {
		names = append(names, d.AttributeName)
	}
	return "[" + strings.Join(names, ", ") + "]"
}

// bill sets the billing mode and the capacity of a table.
func (t *Table) bill(mode string, provisioned *throughput, now time.Time) error {
	switch {
	case mode == onDemand && provisioned != nil:
		return attr.Invalid("One or more parameter values were invalid: Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST")
	case mode == onDemand:
		if !t.OnDemand {
			t.OnDemandSince = now
		}
		t.OnDemand, t.ReadUnits, t.WriteUnits = true, 0, 0
	case provisioned == nil:
		return attr.Invalid("One or more parameter values were invalid: ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED")
	default:
		t.OnDemand, t.ReadUnits, t.WriteUnits = false, provisioned.ReadCapacityUnits, provisioned.WriteCapacityUnits
	}
	return nil
}

// settleLater ends the table's transition after the timings' TableChange.
func (r *Region) settleLater(t *Table) { r.After(r.Timings().TableChange, timerTable, t.Name+"/"+t.ID) }

func (r *Region) finishTransition(key string) {
	name, id, _ := strings.Cut(key, "/")
	t := r.Tables.Get(name)
	switch {
	case t == nil || t.ID != id:
	case t.Status == "DELETING":
		r.Tables.Remove(name)
	default:
		t.Status = "ACTIVE"
		t.Replicas = slices.DeleteFunc(t.Replicas, func(c Replica) bool { return c.Status == "DELETING" })
		for i := range t.Replicas {
			t.Replicas[i].Status = "ACTIVE"
		}
	}
}

// idle finds a table to change or delete. It must not be changing.
func (r *Region) idle(name string) (*Table, error) {
	t, err := r.described(name)
	if err != nil || t.Status == "ACTIVE" {
		return t, err
	}
	return nil, wire.Fail("ResourceInUseException", "Attempt to change a resource which is still in use: Table is being %s: %s", map[string]string{"CREATING": "created", "UPDATING": "updated", "DELETING": "deleted"}[t.Status], t.Name)
}

type tableInput struct{ TableName string }

func describeTable(rq *request, in tableInput) (any, error) {
	t, err := rq.Region.described(in.TableName)
	if err != nil {
		return nil, err
	}
	return map[string]any{"Table": rq.Region.description(t)}, nil
}

// describeTimeToLive answers that items do not expire, because no operation sets an expiry.
func describeTimeToLive(rq *request, in tableInput) (any, error) {
	if _, err := rq.Region.described(in.TableName); err != nil {
		return nil, err
	}
	return map[string]any{"TimeToLiveDescription": map[string]any{"TimeToLiveStatus": "DISABLED"}}, nil
}

func deleteTable(rq *request, in tableInput) (any, error) {
	r := rq.Region
	t, err := r.described(in.TableName)
	if err != nil {
		return nil, err
	}
	if t.Status != "DELETING" { // deleting it again is no error
		switch t, err = r.idle(in.TableName); {
		case err != nil:
			return nil, err
		case t.Protected:
			return nil, attr.Invalid("Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first.")
		}
		t.Status = "DELETING"
		r.settleLater(t)
	}
	out := r.description(t)
	for _, member := range []string{"CreationDateTime", "KeySchema", "AttributeDefinitions"} {
		delete(out, member) // AWS omits it here
	}
	return map[string]any{"TableDescription": out}, nil
}

type replicaInput struct{ RegionName string }

type updateTableInput struct {
	TableName                 string
	BillingMode               string
	ProvisionedThroughput     *throughput
	DeletionProtectionEnabled *bool
	TableClass                string
	ReplicaUpdates            []struct{ Create, Delete *replicaInput }
}

func updateTable(rq *request, in updateTableInput) (any, error) {
	r := rq.Region
	found, err := r.idle(in.TableName)
	if err != nil {
		return nil, err
	}
	t := *found
	t.Replicas = slices.Clone(t.Replicas)
	for _, u := range in.ReplicaUpdates {
		if err := t.replicate(r, u.Create, u.Delete); err != nil {
			return nil, err
		}
	}
	if in.BillingMode == "" && t.OnDemand {
		in.BillingMode = onDemand
	}
	if in.BillingMode == onDemand != t.OnDemand || in.ProvisionedThroughput != nil {
		if err := t.bill(in.BillingMode, in.ProvisionedThroughput, r.Now()); err != nil {
			return nil, err
		}
	}
	if in.DeletionProtectionEnabled != nil {
		t.Protected = *in.DeletionProtectionEnabled
	}
	if in.TableClass != "" {
		t.Class = in.TableClass
	}
	t.Status = "UPDATING"
	*found = t
	r.settleLater(found)
	return map[string]any{"TableDescription": r.description(found)}, nil
}

// replicate adds or removes a replica.
func (t *Table) replicate(r *Region, create, end *replicaInput) error {
	at := func(region string) int {
		return slices.IndexFunc(t.Replicas, func(c Replica) bool { return c.Region == region })
	}
	switch {
	case (create == nil) == (end == nil):
		return attr.Invalid("One or more parameter values were invalid: One of Create or Delete must be specified in a ReplicaUpdate")
	case end != nil:
		i := at(end.RegionName)
		if i < 0 {
			return attr.Invalid("One or more parameter values were invalid: Replica for region %s does not exist", end.RegionName)
		}
		t.Replicas[i].Status = "DELETING"
	case at(create.RegionName) >= 0 || create.RegionName == r.Name:
		return attr.Invalid("One or more parameter values were invalid: Replica for region %s already exists", create.RegionName)
	default:
		t.Replicas = append(t.Replicas, Replica{create.RegionName, "CREATING"})
	}
	return nil
}

// description returns a table in the form of answers.
func (r *Region) description(t *Table) map[string]any {
	if r.Now().Sub(t.Counted.At) >= countEvery {
		t.Counted = Count{At: r.Now(), Items: t.Items.Len()}
		for _, row := range t.Items.Sorted() {
			t.Counted.Bytes += t.Items.Get(row).Size()
		}
	}
	var schema []keyElement
	var definitions []attributeDefinition
	for i, k := range t.Keys {
		schema = append(schema, keyElement{k.Name, []string{"HASH", "RANGE"}[i]})
		definitions = append(definitions, attributeDefinition{k.Name, k.Type})
	}
	out := map[string]any{
		"TableName": t.Name, "TableId": t.ID, "TableArn": r.ARN("dynamodb", "table/"+t.Name), "TableStatus": t.Status,
		"CreationDateTime": wire.Epoch(t.Created), "KeySchema": schema, "AttributeDefinitions": definitions,
		"ItemCount": t.Counted.Items, "TableSizeBytes": t.Counted.Bytes, "DeletionProtectionEnabled": t.Protected,
		"ProvisionedThroughput": map[string]any{"NumberOfDecreasesToday": 0, "ReadCapacityUnits": t.ReadUnits, "WriteCapacityUnits": t.WriteUnits},
	}
	if t.OnDemand {
		out["BillingModeSummary"] = map[string]any{"BillingMode": onDemand, "LastUpdateToPayPerRequestDateTime": wire.Epoch(t.OnDemandSince)}
	}
	if t.Class != "" {
		out["TableClassSummary"] = map[string]any{"TableClass": t.Class}
	}
	if t.KMSKey != "" {
		out["SSEDescription"] = map[string]any{"Status": "ENABLED", "SSEType": "KMS", "KMSMasterKeyArn": t.KMSKey}
	}
	if len(t.Replicas) > 0 {
		replicas := []map[string]any{}
		for _, c := range t.Replicas {
			replicas = append(replicas, map[string]any{
				"RegionName": c.Region, "ReplicaStatus": c.Status,
				"ReplicaArn": fmt.Sprintf("arn:%s:dynamodb:%s:%s:table/%s", world.Partition(c.Region), c.Region, r.Account, t.Name),
			})
		}
		out["Replicas"], out["GlobalTableVersion"] = replicas, "2019.11.21"
	}
	return out
}
