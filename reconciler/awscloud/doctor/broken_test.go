package doctor_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/awscloud/doctor"
)

// broken is an AWS that does something else than weir assumes.
type broken struct {
	name string
	// operation is the action of a query, or method and path of EKS's API.
	operation *regexp.Regexp
	// form and answer change what is sent and what comes back; refuse answers in the place
	// of AWS where the body fits it.
	form   func(url.Values)
	answer func(string) string
	refuse func(body string) (status int, code string)
	header func(http.Header)
}

func (b broken) front(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(err)
		}
		operation := r.Method + " " + r.URL.Path
		form, isQuery := url.Values(nil), strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded")
		if isQuery {
			if form, err = url.ParseQuery(string(body)); err != nil {
				panic(err)
			}
			operation = form.Get("Action")
		}
		if b.operation.MatchString(operation) {
			if b.refuse != nil {
				if status, code := b.refuse(string(body)); status != 0 {
					refuse(w, isQuery, status, code)
					return
				}
			}
			if b.form != nil {
				b.form(form)
				body = []byte(form.Encode())
			}
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		r.Header.Set("Content-Length", strconv.Itoa(len(body)))
		record := httptest.NewRecorder()
		next.ServeHTTP(record, r)
		text := record.Body.String()
		for k, v := range record.Header() {
			w.Header()[k] = v
		}
		if b.operation.MatchString(operation) {
			if b.answer != nil {
				text = b.answer(text)
			}
			if b.header != nil {
				b.header(w.Header())
			}
		}
		w.Header().Del("Content-Length")
		w.WriteHeader(record.Code)
		_, _ = io.WriteString(w, text)
	})
}

// refuse answers an error in the form of the service.
func refuse(w http.ResponseWriter, query bool, status int, code string) {
	if query {
		w.WriteHeader(status)
		// Both forms of the query protocol: EC2's and Auto Scaling's.
		fmt.Fprintf(w, "<Response><Errors><Error><Code>%[1]s</Code><Message>no</Message></Error></Errors><Error><Code>%[1]s</Code><Message>no</Message></Error></Response>", code)
		return
	}
	w.Header().Set("X-Amzn-ErrorType", code)
	w.WriteHeader(status)
	fmt.Fprint(w, `{"message":"no"}`)
}

func replaced(old, with string) func(string) string {
	return func(text string) string { return strings.ReplaceAll(text, old, with) }
}

var startTime = regexp.MustCompile(`<StartTime>[^<]*</StartTime>`)

// turned gives the refreshes the times of each other.
func turned(text string) string {
	times := startTime.FindAllString(text, -1)
	slices.Reverse(times)
	return startTime.ReplaceAllStringFunc(text, func(string) string {
		defer func() { times = times[1:] }()
		return times[0]
	})
}

func always(status int, code string) func(string) (int, string) {
	return func(string) (int, string) { return status, code }
}

var brokenAssumptions = []broken{
	{name: "aliases-in-one-list", operation: regexp.MustCompile(`^DescribeLaunchTemplateVersions$`), refuse: always(400, "InvalidParameterCombination")},
	{name: "version-tokens", operation: regexp.MustCompile(`^CreateLaunchTemplateVersion$`), form: func(f url.Values) { f.Del("ClientToken") }},
	{name: "description-units", operation: regexp.MustCompile(`^CreateLaunchTemplateVersion$`), form: func(f url.Values) { f.Set("VersionDescription", "short") }},
	{name: "pages-of-a-thousand", operation: regexp.MustCompile(`^DescribeVpcs$`), refuse: always(400, "InvalidParameterValue")},
	{name: "metadata-tags-text", operation: regexp.MustCompile(`^DescribeScalingActivities$`), answer: replaced("is not a valid tag key", "cannot be shown")},
	{name: "launch-failure-texts", operation: regexp.MustCompile(`^DescribeScalingActivities$`), answer: replaced("is not a valid tag key", "cannot be shown")},
	{name: "deleted-version-texts", operation: regexp.MustCompile(`^DescribeScalingActivities$`), answer: replaced("Could not find the specified version", "Somebody removed it:")},
	{name: "unknown-name-texts", operation: regexp.MustCompile(`^CreateAutoScalingGroup$`), answer: replaced("The subnet ID", "Subnet")},
	{name: "dry-run-checks", operation: regexp.MustCompile(`^RunInstances$`), refuse: always(400, "InvalidParameterCombination")},
	{name: "refreshes-newest-first", operation: regexp.MustCompile(`^DescribeInstanceRefreshes$`), answer: turned},
	{name: "desired-configuration-comes-back", operation: regexp.MustCompile(`^DescribeInstanceRefreshes$`), answer: replaced("<Version>2</Version>", "<Version>$Latest</Version>")},
	{name: "rollback-is-cancelled", operation: regexp.MustCompile(`^CancelInstanceRefresh$`), refuse: always(400, "ValidationError")},
	{name: "skip-matching-types", operation: regexp.MustCompile(`^StartInstanceRefresh$`), form: func(f url.Values) {
		f.Set("DesiredConfiguration.MixedInstancesPolicy.LaunchTemplate.Overrides.member.1.InstanceType", "t3.micro")
	}},
	{name: "empty-overrides", operation: regexp.MustCompile(`^UpdateAutoScalingGroup$`), form: func(f url.Values) { f.Del("MixedInstancesPolicy.LaunchTemplate.Overrides") }},
	{name: "empty-overrides-in-refresh", operation: regexp.MustCompile(`^StartInstanceRefresh$`), refuse: func(body string) (int, string) {
		if !strings.Contains(body, "Overrides") {
			return 400, "ValidationError"
		}
		return 0, ""
	}},
	{name: "refresh-ends-at-its-last-checkpoint", operation: regexp.MustCompile(`^StartInstanceRefresh$`), refuse: func(body string) (int, string) {
		if strings.Contains(body, "CheckpointPercentages") {
			return 400, "ValidationError"
		}
		return 0, ""
	}},
	{name: "checkpoints-count-the-group", operation: regexp.MustCompile(`^StartInstanceRefresh$`), form: func(f url.Values) {
		f.Del("Preferences.CheckpointPercentages.member.1")
		f.Del("Preferences.CheckpointDelay")
	}},
	{name: "lifecycle-action-gone", operation: regexp.MustCompile(`^RecordLifecycleActionHeartbeat$`), refuse: always(404, "NoSuchAction")},
	{name: "quota-families", operation: regexp.MustCompile(`^POST /$`), answer: replaced("Running On-Demand Inf", "Running On-Demand Mac")},
	{name: "full-filters", operation: regexp.MustCompile(`^DescribeKeyPairs$`), refuse: always(400, "FilterLimitExceeded")},
	{name: "warm-pool-metrics", operation: regexp.MustCompile(`^EnableMetricsCollection$`), refuse: always(400, "ValidationError")},
	{name: "unit-of-capacity", operation: regexp.MustCompile(`^DescribeAutoScalingGroups$`), answer: replaced("<MinSize>", "<DesiredCapacityType>weights</DesiredCapacityType><MinSize>")},
	{name: "retained-states", operation: regexp.MustCompile(`^DescribeAutoScalingGroups$`), answer: replaced("<LifecycleState>InService<", "<LifecycleState>Retained:Terminating<")},
	{name: "codes-told-apart-by-text", operation: regexp.MustCompile(`^DescribeInstanceRefreshes$`), answer: replaced("not found", "unknown")},
	{name: "groups-behind-nodegroups", operation: regexp.MustCompile(`^CreateOrUpdateTags$`), form: func(f url.Values) { f.Set("Tags.member.1.Key", "other") }},
	{name: "unchanged-version-is-taken", operation: regexp.MustCompile(`^POST .*/update-version$`), refuse: always(400, "InvalidParameterException")},
	{name: "nodegroup-warm-pool-capacity", operation: regexp.MustCompile(`^POST .*/update-config$`), refuse: func(body string) (int, string) {
		if strings.Contains(body, ":-1") {
			return 400, "InvalidParameterException"
		}
		return 0, ""
	}},
	{name: "nodegroup-defaults", operation: regexp.MustCompile(`^GET .*/node-groups/.*-plain$`), answer: replaced(`"diskSize":20`, `"diskSize":30`)},
	{name: "nodegroup-launch-hook", operation: regexp.MustCompile(`^DescribeLifecycleHooks$`), answer: replaced("Launch-LC-Hook", "Launch-Hook")},
	{name: "answers-tell-the-time", operation: regexp.MustCompile(`^Describe`), header: func(h http.Header) { h.Set("Date", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)) }},
	{name: "eks-image-names", operation: regexp.MustCompile(`^DescribeImages$`), answer: replaced("amazon-eks-node-al2023", "eks-al2023-node")},
}

// TestEachBrokenAssumptionIsFound breaks one assumption after the other.
func TestEachBrokenAssumptionIsFound(t *testing.T) {
	seen := verdicts(newPatient(t, nil).visit(t.Context(), nil))
	for _, b := range brokenAssumptions {
		delete(seen, b.name)
		t.Run(b.name, func(t *testing.T) {
			p := newPatient(t, b.front)
			r := p.visit(t.Context(), nil)
			if got := verdicts(r)[b.name]; got != doctor.Differs {
				t.Errorf("it is %s", got)
				for _, f := range r.Findings {
					t.Logf("%-10s %-34s %s", f.Verdict, f.Name, strings.Join(f.Evidence, "; "))
				}
			}
			p.empty()
		})
	}
	for name, verdict := range seen {
		if verdict == doctor.AsAssumed {
			t.Errorf("%s is checked, and no emulator breaks it", name)
		}
	}
}
