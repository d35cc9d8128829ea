// Package everyday checks what programs on client-go do all the time.
package everyday

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"holdfast.example/tests/clients/check"
)

// patience is how long something may take that must happen. It is only waited for where something is
// wrong.
const patience = 30 * time.Second

// Checks are all of them.
var Checks = []check.Check{
	{Name: "pages", Run: placed(pages)},
	{Name: "until", Run: placed(until)},
	{Name: "contention", Run: placed(contention)},
	{Name: "names", Run: placed(names)},
	{Name: "scale", Run: placed(scales)},
	{Name: "tokens", Run: placed(tokens)},
	{Name: "access", Run: placed(access)},
	{Name: "discovery", Run: placed(discover)},
	{Name: "events", Run: placed(events)},
}

// place is what each of these checks works with.
type place struct {
	*check.Run
	config    *rest.Config
	client    *kubernetes.Clientset
	namespace string
}

// placed gives a check a client and a namespace of its own.
func placed(do func(context.Context, *place) error) func(context.Context, *check.Run) error {
	return func(ctx context.Context, run *check.Run) error {
		namespace, remove, err := run.Namespace(ctx)
		if err != nil {
			return err
		}
		defer remove()
		config := run.Config()
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return fmt.Errorf("client: %w", err)
		}
		return do(ctx, &place{Run: run, config: config, client: client, namespace: namespace})
	}
}
