// Package cloudwatch implements the metric alarms of CloudWatch. It has no metrics, so nothing evaluates an
// alarm: it is INSUFFICIENT_DATA until SetAlarmState changes that, and then keeps the state. AWS would
// evaluate it again within a period. The actions of alarms are stored and not executed. A service that
// reacts to an alarm, such as a refresh with that alarm, reacts when it receives the new state.
package cloudwatch

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// The states of an alarm.
const (
	InAlarm      = "ALARM"
	insufficient = "INSUFFICIENT_DATA"
)

// Region is CloudWatch's part of a region.
type Region struct {
	*world.Region `json:"-"`

	Alarms world.Table[*Alarm] // by name

	changed func(name string)
}

// Join connects the region, new or read from JSON, with the shared part. changed receives the name of each
// alarm whose state changes.
func (r *Region) Join(base *world.Region, changed func(name string)) {
	r.Region, r.changed = base, changed
}

// Alarm is a metric alarm.
type Alarm struct {
	Settings Settings
	State    string
	Reason   string
	Data     string    // data of the reason, as JSON
	Put      time.Time // time of the last change of its settings
	Updated  time.Time // time of the last change of its state or reason
	Turned   time.Time // time of the last change of its state
}

// Settings contains PutMetricAlarm's settings of an alarm, by their names on the wire.
type Settings struct {
	AlarmName               string
	AlarmDescription        string            `json:",omitempty"`
	ActionsEnabled          *bool             `json:",omitempty"`
	OKActions               []string          `json:",omitempty"`
	AlarmActions            []string          `json:",omitempty"`
	InsufficientDataActions []string          `json:",omitempty"`
	MetricName              string            `json:",omitempty"`
	Namespace               string            `json:",omitempty"`
	Statistic               string            `json:",omitempty"`
	ExtendedStatistic       string            `json:",omitempty"`
	Dimensions              []json.RawMessage `json:",omitempty"` // checked against the model
	Period                  int64             `json:",omitempty"`
	Unit                    string            `json:",omitempty"`
	EvaluationPeriods       int64             `json:",omitempty"`
	DatapointsToAlarm       int64             `json:",omitempty"`
	Threshold               *float64          `json:",omitempty"`
	ComparisonOperator      string            `json:",omitempty"`
	TreatMissingData        string            `json:",omitempty"`

	EvaluateLowSampleCountPercentile string `json:",omitempty"`
}

// StateOf returns the state of an alarm, or an empty string if it does not exist.
func (r *Region) StateOf(name string) string {
	if a := r.Alarms.Get(name); a != nil {
		return a.State
	}
	return ""
}

// request is a call to the service.
type request = wire.Request[*Region]

// Service returns the alarm operations of CloudWatch.
func Service() *wire.Service {
	d := wire.QueryDialect()
	d.Malformed = func(why string) *wire.Error { return wire.Fail("SerializationException", "%s", why) }
	sv := wire.NewService("monitoring", d,
		wire.JSONOp("PutMetricAlarm", wire.Writes, putMetricAlarm),
		wire.JSONOp("DescribeAlarms", wire.Reads, describeAlarms),
		wire.JSONOp("SetAlarmState", wire.Writes, setAlarmState),
		wire.JSONOp("DeleteAlarms", wire.Writes, deleteAlarms),
	)
	sv.ErrorType = func(code string) string {
		switch code {
		case "LimitExceeded", "InvalidFormat":
			return code + "Fault"
		}
		return code
	}
	return sv
}

func invalid(format string, args ...any) *wire.Error {
	return wire.Fail("ValidationError", format, args...)
}

func putMetricAlarm(rq *request, in Settings) (any, error) {
	r := rq.Region
	if err := in.check(); err != nil {
		return nil, err
	}
	if in.ActionsEnabled == nil {
		yes := true
		in.ActionsEnabled = &yes
	}
	a := r.Alarms.Get(in.AlarmName)
	if a == nil {
		a = &Alarm{State: insufficient, Reason: "Unchecked: Initial alarm creation", Updated: r.Now(), Turned: r.Now()}
	}
	kept := *a // an update does not change the state
	kept.Settings, kept.Put = in, r.Now()
	r.Alarms.Put(in.AlarmName, &kept)
	return nil, nil
}

func (in *Settings) check() error {
	switch {
	case strings.ContainsFunc(in.AlarmName, func(c rune) bool { return c < 0x20 || c == 0x7f }):
		return invalid("The parameter AlarmName must not contain control characters")
	case in.MetricName == "" || in.Namespace == "":
		return invalid("Metric name and namespace must both be specified: the emulator has alarms on one metric alone")
	case (in.Statistic == "") == (in.ExtendedStatistic == ""):
		return invalid("Exactly one of Statistic and ExtendedStatistic must be specified")
	case in.Period != 10 && in.Period != 20 && in.Period != 30 && (in.Period == 0 || in.Period%60 != 0):
		return invalid("Period must be 10, 20, 30 or a multiple of 60")
	case in.EvaluationPeriods == 0:
		return invalid("The parameter EvaluationPeriods must be specified")
	case in.DatapointsToAlarm > in.EvaluationPeriods:
		return invalid("DatapointsToAlarm must not be greater than EvaluationPeriods")
	case in.Threshold == nil || in.ComparisonOperator == "":
		return invalid("Threshold and ComparisonOperator must be specified for a static threshold")
	case strings.HasSuffix(in.ComparisonOperator, "UpperThreshold") || in.ComparisonOperator == "LessThanLowerThreshold":
		return invalid("ComparisonOperator %s is for anomaly detection alone", in.ComparisonOperator)
	case !slices.Contains([]string{"", "breaching", "notBreaching", "ignore", "missing"}, in.TreatMissingData):
		return invalid("The value '%s' for parameter TreatMissingData is not supported", in.TreatMissingData)
	}
	return nil
}

type describeInput struct {
	AlarmNames      []string
	AlarmNamePrefix string
	AlarmTypes      []string
	StateValue      string
	ActionPrefix    string
	MaxRecords      *int
	NextToken       string
}

// describeAlarms ignores names without an alarm.
func describeAlarms(rq *request, in describeInput) (any, error) {
	r := rq.Region
	if len(in.AlarmNames) > 0 && in.AlarmNamePrefix != "" {
		return nil, invalid("AlarmNames and AlarmNamePrefix cannot both be specified")
	}
	limit := 50
	if in.MaxRecords != nil {
		limit = *in.MaxRecords
	}
	var names []string
	for _, name := range r.Alarms.Sorted() {
		if r.Alarms.Get(name).selected(&in) {
			names = append(names, name)
		}
	}
	alarms := []any{}
	next, err := rq.Page(names, in.NextToken, limit, func(name string) bool {
		alarms = append(alarms, r.Alarms.Get(name).shown(r))
		return true
	})
	if err != nil {
		return nil, err
	}
	reply := map[string]any{"MetricAlarms": alarms, "CompositeAlarms": []any{}}
	if next != "" {
		reply["NextToken"] = next
	}
	return reply, nil
}

func (a *Alarm) selected(in *describeInput) bool {
	s := &a.Settings
	actions := slices.Concat(s.OKActions, s.AlarmActions, s.InsufficientDataActions)
	switch {
	case len(in.AlarmNames) > 0 && !slices.Contains(in.AlarmNames, s.AlarmName),
		!strings.HasPrefix(s.AlarmName, in.AlarmNamePrefix),
		len(in.AlarmTypes) > 0 && !slices.Contains(in.AlarmTypes, "MetricAlarm"),
		in.StateValue != "" && in.StateValue != a.State:
		return false
	}
	return in.ActionPrefix == "" || slices.ContainsFunc(actions, func(arn string) bool { return strings.HasPrefix(arn, in.ActionPrefix) })
}

// shown returns an alarm in the form of answers.
func (a *Alarm) shown(r *Region) any {
	return struct {
		Settings
		AlarmArn                           string
		StateValue, StateReason            string
		StateReasonData                    string `json:",omitempty"`
		AlarmConfigurationUpdatedTimestamp float64
		StateUpdatedTimestamp              float64
		StateTransitionedTimestamp         float64
	}{a.Settings, r.ARN("cloudwatch", "alarm:"+a.Settings.AlarmName), a.State, a.Reason, a.Data, wire.Epoch(a.Put), wire.Epoch(a.Updated), wire.Epoch(a.Turned)}
}

type setStateInput struct{ AlarmName, StateValue, StateReason, StateReasonData string }

func setAlarmState(rq *request, in setStateInput) (any, error) {
	r := rq.Region
	a := r.Alarms.Get(in.AlarmName)
	switch {
	case a == nil:
		return nil, notFound()
	case in.StateReasonData != "" && !json.Valid([]byte(in.StateReasonData)):
		return nil, wire.Fail("InvalidFormat", "StateReasonData is not valid JSON")
	}
	turned := a.State != in.StateValue
	a.State, a.Reason, a.Data, a.Updated = in.StateValue, in.StateReason, in.StateReasonData, r.Now()
	if turned {
		a.Turned = r.Now()
		r.changed(in.AlarmName)
	}
	return nil, nil
}

// deleteAlarms deletes the existing alarms, and returns an error if one did not exist.
func deleteAlarms(rq *request, in struct{ AlarmNames []string }) (any, error) {
	missing := false
	for _, name := range in.AlarmNames {
		missing = missing || !rq.Region.Alarms.Has(name)
		rq.Region.Alarms.Remove(name)
	}
	if missing {
		return nil, notFound()
	}
	return nil, nil
}

func notFound() *wire.Error {
	return &wire.Error{Code: "ResourceNotFound", Message: "The named resource does not exist.", Status: 404}
}
