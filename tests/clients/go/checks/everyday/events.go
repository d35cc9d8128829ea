package everyday

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	newer "k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
)

// events has programs tell what they do: repetitions are counted, not stored again.
func events(ctx context.Context, p *place) error {
	about, err := p.Client.CoreV1().ConfigMaps(p.Namespace).Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "told-about"}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	about.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	p.Report("recorder", p.recorded(ctx, about), "ten repetitions are one event with a count of ten")
	p.Report("newer-recorder", p.recordedAnew(ctx, about), "a repetition begins a series")
	return nil
}

func (p *place) recorded(ctx context.Context, about *corev1.ConfigMap) error {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedv1.EventSinkImpl{
		Interface: p.Client.CoreV1().Events(p.Namespace),
	})
	defer broadcaster.Shutdown()
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "clients"})
	for number := range 10 {
		recorder.Eventf(about, corev1.EventTypeNormal, "Told", "told %d", number/10)
	}
	selector := fields.Set{
		"involvedObject.name": about.Name, "involvedObject.kind": "ConfigMap", "reason": "Told",
	}.String()
	last := "nothing"
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true,
		func(ctx context.Context) (bool, error) {
			list, err := p.Client.CoreV1().Events(p.Namespace).List(ctx,
				metav1.ListOptions{FieldSelector: selector})
			if err != nil {
				return false, err
			}
			if len(list.Items) != 1 {
				last = fmt.Sprintf("%d events", len(list.Items))
				return false, nil
			}
			last = fmt.Sprintf("a count of %d", list.Items[0].Count)
			return list.Items[0].Count == 10, nil
		})
	if err != nil {
		return fmt.Errorf("%s: %w", last, err)
	}
	return nil
}

func (p *place) recordedAnew(ctx context.Context, about *corev1.ConfigMap) error {
	broadcaster := newer.NewBroadcaster(&newer.EventSinkImpl{Interface: p.Client.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return err
	}
	defer broadcaster.Shutdown()
	recorder := broadcaster.NewRecorder(scheme.Scheme, "clients.holdfast.example/recorder")
	for range 3 {
		recorder.Eventf(about, nil, corev1.EventTypeNormal, "ToldAnew", "Telling", "told again")
	}
	last := "nothing"
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true,
		func(ctx context.Context) (bool, error) {
			list, err := p.Client.EventsV1().Events(p.Namespace).List(ctx,
				metav1.ListOptions{FieldSelector: "reason=ToldAnew"})
			if err != nil {
				return false, err
			}
			last = fmt.Sprintf("%d events", len(list.Items))
			return len(list.Items) == 1 && inSeries(&list.Items[0]), nil
		})
	if err != nil {
		return fmt.Errorf("%s: %w", last, err)
	}
	return nil
}

func inSeries(event *eventsv1.Event) bool {
	return event.Series != nil && event.Series.Count >= 2 &&
		event.ReportingController == "clients.holdfast.example/recorder"
}
