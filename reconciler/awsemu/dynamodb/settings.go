package dynamodb

import (
	"strings"
	"time"
	"unicode"

	"github.com/weir-gitops/weir/reconciler/awsemu/dynamodb/attr"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

const (
	timerTTL    = "dynamodb.ttl"
	timerExpiry = "dynamodb.expiry"
	// tooOld is from when on a time to live is taken for a mistake.
	tooOld = 5 * 365 * 24 * time.Hour
	// restorableFor is how far back a table can be restored.
	restorableFor = 35 * 24 * time.Hour
	maxTags       = 50
)

type timeToLive struct {
	AttributeName string
	Enabled       bool
}

type updateTimeToLiveInput struct {
	TableName               string
	TimeToLiveSpecification timeToLive
}

func updateTimeToLive(rq *request, in updateTimeToLiveInput) (any, error) {
	r, want := rq.Region, in.TimeToLiveSpecification
	t, err := r.idle(in.TableName)
	if err != nil {
		return nil, err
	}
	switch ttl := &t.TTL; {
	case want.Enabled && strings.HasPrefix(ttl.Status, "ENABL"):
		return nil, attr.Invalid("TimeToLive is already enabled")
	case !want.Enabled && ttl.Status == "":
		return nil, attr.Invalid("TimeToLive is already disabled")
	case !want.Enabled && ttl.Attribute != want.AttributeName:
		return nil, attr.Invalid("TimeToLive is active on a different AttributeName: current AttributeName is %s", ttl.Attribute)
	case strings.HasSuffix(ttl.Status, "ING"):
		return nil, attr.Invalid("Time to live has been modified multiple times within a fixed interval")
	case want.Enabled:
		*ttl = TimeToLive{want.AttributeName, "ENABLING"}
	default:
		ttl.Status = "DISABLING"
	}
	r.After(r.Timings().TableChange, timerTTL, t.Name+"/"+t.ID)
	return map[string]any{"TimeToLiveSpecification": want}, nil
}

func (r *Region) settleTTL(key string) {
	name, id, _ := strings.Cut(key, "/")
	t := r.Tables.Get(name)
	switch {
	case t == nil || t.ID != id:
	case t.TTL.Status == "DISABLING":
		t.TTL = TimeToLive{}
	default:
		t.TTL.Status = "ENABLED"
		for _, row := range t.Items.Sorted() {
			r.setExpiry(t, row)
		}
	}
}

func describeTimeToLive(rq *request, in tableInput) (any, error) {
	t, err := rq.Region.described(in.TableName)
	if err != nil {
		return nil, err
	}
	out := map[string]any{"TimeToLiveStatus": "DISABLED"}
	if t.TTL.Status != "" {
		out = map[string]any{"TimeToLiveStatus": t.TTL.Status, "AttributeName": t.TTL.Attribute}
	}
	return map[string]any{"TimeToLiveDescription": out}, nil
}

// expiry is when an item is deleted: a while after its time.
func (r *Region) expiry(t *Table, row string) (time.Time, bool) {
	v := t.Items.Get(row)[t.TTL.Attribute]
	seconds, whole := v.Number.Whole()
	at := time.Unix(seconds, 0).UTC()
	if t.TTL.Status != "ENABLED" || v.Type != "N" || !whole || seconds <= 0 || seconds > 1<<40 || at.Before(r.Now().Add(-tooOld)) {
		return time.Time{}, false
	}
	return at.Add(r.Timings().ItemExpiry), true
}

// setExpiry sets the timer of an item that expires, unless there is one before.
func (r *Region) setExpiry(t *Table, row string) {
	due, ok := r.expiry(t, row)
	if set, known := t.Expiries[row]; !ok || known && !due.Before(set) {
		return
	}
	if t.Expiries == nil {
		t.Expiries = map[string]time.Time{}
	}
	t.Expiries[row] = due
	r.After(max(0, due.Sub(r.Now())), timerExpiry, t.Name+"/"+row)
}

func (r *Region) expire(key string) {
	name, row, _ := strings.Cut(key, "/")
	t := r.Tables.Get(name)
	if t == nil {
		return
	}
	delete(t.Expiries, row)
	if due, ok := r.expiry(t, row); ok && due.After(r.Now()) {
		r.setExpiry(t, row)
	} else if ok {
		t.Items.Remove(row)
	}
}

// backedUp is described for the calls about backups, which have an error of their own.
func (r *Region) backedUp(name string) (*Table, error) {
	t, err := r.table(name)
	if t == nil && err == nil {
		err = wire.Fail("TableNotFoundException", "Table not found: %s", name)
	}
	return t, err
}

func describeContinuousBackups(rq *request, in tableInput) (any, error) {
	t, err := rq.Region.backedUp(in.TableName)
	if err != nil {
		return nil, err
	}
	return rq.Region.continuousBackups(t), nil
}

type updateContinuousBackupsInput struct {
	TableName                        string
	PointInTimeRecoverySpecification struct{ PointInTimeRecoveryEnabled bool }
}

func updateContinuousBackups(rq *request, in updateContinuousBackupsInput) (any, error) {
	r := rq.Region
	t, err := r.backedUp(in.TableName)
	if err != nil {
		return nil, err
	}
	switch on := in.PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled; {
	case !on:
		t.Restorable = time.Time{}
	case t.Restorable.IsZero():
		t.Restorable = r.Now()
	}
	return r.continuousBackups(t), nil
}

func (r *Region) continuousBackups(t *Table) map[string]any {
	point := map[string]any{"PointInTimeRecoveryStatus": "DISABLED"}
	if !t.Restorable.IsZero() {
		earliest := r.Now().Add(-restorableFor)
		if earliest.Before(t.Restorable) {
			earliest = t.Restorable
		}
		point = map[string]any{"PointInTimeRecoveryStatus": "ENABLED", "RecoveryPeriodInDays": 35, "EarliestRestorableDateTime": wire.Epoch(earliest), "LatestRestorableDateTime": wire.Epoch(r.Now())}
	}
	return map[string]any{"ContinuousBackupsDescription": map[string]any{"ContinuousBackupsStatus": "ENABLED", "PointInTimeRecoveryDescription": point}}
}

// tagged finds the table of an ARN.
func (r *Region) tagged(arn string) (*Table, error) {
	if !strings.HasPrefix(arn, "arn:") {
		return nil, attr.Invalid("Invalid TableArn: ARNs must start with 'arn:': %s", arn)
	}
	t, err := r.table(arn)
	if t == nil && err == nil {
		err = wire.Fail("ResourceNotFoundException", "Requested resource not found: ResourcArn: %s not found", arn)
	}
	return t, err
}

// tag adds tags; on an error there are those that there were.
func (t *Table) tag(tags []tag) error {
	all := t.Tags.Clone()
	for _, one := range tags {
		fault := world.TagFault(one.Key, one.Value)
		if strings.ContainsFunc(one.Key+one.Value, func(c rune) bool {
			return !unicode.IsLetter(c) && !unicode.IsSpace(c) && !unicode.IsNumber(c) && !strings.ContainsRune("+-=._:/@", c)
		}) {
			fault = "Tags consist of letters, spaces, numbers and +-=._:/@"
		}
		if fault != "" {
			return attr.Invalid("One or more parameter values were invalid: %s", fault)
		}
		all.Set(one.Key, one.Value)
	}
	if all.UserCount() > maxTags {
		return attr.Invalid("One or more parameter values were invalid: Too many tags: a table can have %d", maxTags)
	}
	t.Tags = all
	return nil
}

type tagResourceInput struct {
	ResourceArn string
	Tags        []tag
	TagKeys     []string
	NextToken   string
}

func tagResource(rq *request, in tagResourceInput) (any, error) {
	t, err := rq.Region.tagged(in.ResourceArn)
	if err != nil {
		return nil, err
	}
	if len(in.Tags) == 0 {
		return nil, attr.Invalid("1 validation error detected: Value '[]' at 'tags' failed to satisfy constraint: Member must have length greater than or equal to 1")
	}
	return nil, t.tag(in.Tags)
}

func untagResource(rq *request, in tagResourceInput) (any, error) {
	t, err := rq.Region.tagged(in.ResourceArn)
	if err != nil {
		return nil, err
	}
	for _, key := range in.TagKeys {
		t.Tags.Remove(key)
	}
	return nil, nil
}

func listTagsOfResource(rq *request, in tagResourceInput) (any, error) {
	t, err := rq.Region.tagged(in.ResourceArn)
	if err != nil {
		return nil, err
	}
	out := []tag{}
	for _, one := range t.Tags {
		out = append(out, tag(one))
	}
	return map[string]any{"Tags": out}, nil
}
