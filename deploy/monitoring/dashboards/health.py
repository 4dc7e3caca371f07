"""The dashboard of operators: counting, final windows, producers' delivery."""

from deniable.deploy.monitoring.dashboards.panels import Panel, PanelTable, durations

TITLE = "deniable: pipeline health"
QUESTION = "Are reports counted, do windows become final, do producers deliver?"
# fmt: off
# A table, a row's title before its panels; of a panel: title, unit and question, then a line for each query.
ROWS: PanelTable = (
    "Counting",
    Panel("Workers and partitions", "short",
        "Is every partition owned? Workers that are scraped, and partitions that they count. If these are "
        "fewer than those of `reports`, records wait: start workers, or see their `/readyz`.",
        {"workers": "count(deniable_resyncs_total)",
         "partitions owned": "count(count by (partition) (deniable_position_records))"}, explained=()),
    Panel("Stalled partitions", "short", "Is any partition stalled?",
        {"partition {{partition}}": "max by (partition) (deniable_stalled)"}, limit=1),
    Panel("Lag", "suffix: records", "Does counting keep up?",
        {"partition {{partition}}": "max by (partition) (deniable_lag_records)"}),
    Panel("Age of the newest counted record", "s",
        "How old is the newest counted record? It ages while nobody reports.",
        {"partition {{partition}}": "time() - max by (partition) (deniable_watermark_timestamp_seconds)"}),
    Panel("Ledgers opened again", "suffix:/s", "Do workers lose partitions? Ledgers a second.",
        {"all workers": "sum(rate(deniable_resyncs_total))"}),
    Panel("Event loop's delay", "s", "Is a worker overloaded?", durations("deniable_loop_delay_seconds")),
    "Reports and packs",
    Panel("Reports", "suffix: reports/s", "How many reports arrive, and are they counted?",
        {"{{result}}": "sum by (result) (rate(deniable_reports_total))"}),
    Panel("Rejected share of packs", "percentunit",
        "Are more packs rejected than usual? Packs of all collections.",
        {"rejected": 'sum(rate(deniable_packs_total{result="rejected"})) / sum(rate(deniable_packs_total))'}),
    Panel("Packs rejected", "suffix: packs/s", "Why are packs rejected? Packs of all collections.",
        {"{{reason}}": "sum by (reason) (rate(deniable_packs_rejected_total))"}),
    "Windows and estimates",
    Panel("Windows", "short", "Do windows become final?",
        {"{{state}}": "sum by (state) (max by (collection, state) (deniable_windows))"}),
    Panel("Late windows", "short", "Which collections wait for final estimates that are due?",
        {"{{collection}}": 'max by (collection) (deniable_windows{state="late"})'}, limit=1),
    Panel("Failures of windows", "suffix: windows/s",
        "Are there windows without an estimate, or with a second final one?",
        {"{{collection}}: estimate_failures": "sum by (collection) (rate(deniable_estimate_failures_total))",
         "{{collection}}: windows_lost": "sum by (collection) (rate(deniable_windows_lost_total))",
         "{{collection}}: finals_revised": "sum by (collection) (rate(deniable_finals_revised_total))"}),
    Panel("Canaries", "short", "Is the whole path still correct?",
        {"{{collection}}: canary_chi_square": "max by (collection) (deniable_canary_chi_square)",
         "{{collection}}: canary_threshold": "max by (collection) (deniable_canary_threshold)"}),
    Panel("Windows of canaries", "suffix: windows/s",
        "Were all windows right, including those between two scrapes?",
        {"{{collection}}: {{result}}": "sum by (collection, result) (rate(deniable_canary_windows_total))"}),
    Panel("Silence of canaries", "percentunit",  # the alert DeniableCanaryStill has its limit
        "Are canaries still sent? Time since the newest window began, as a share of 3 windows and 10 "
        "minutes.",
        {"{{collection}}":
            "(time() - max by (collection) (deniable_estimate_window_start_timestamp_seconds))"
            " / (3 * max by (collection) (deniable_canary_window_seconds) + 600)"},
        explained=("deniable_canary_window_seconds", "deniable_estimate_window_start_timestamp_seconds"),
        limit=1),
    Panel("Time to estimate", "s", "Does estimation keep up with the windows?",
        durations("deniable_estimate_seconds")),
    Panel("Time to grow", "s", "Do looks for frequent texts keep up with the windows?",
        durations("deniable_growing_seconds")),
    Panel("Time to store", "s", "Does Kafka store counts in time?",
        durations("deniable_checkpoint_seconds")),
    "Producers",
    Panel("Reports of producers", "suffix: reports/s", "Do reports of apps reach the broker in time?",
        {"{{result}}": "sum by (result) (rate(deniable_producer_reports_total))"}),
    Panel("Reports refused", "suffix: reports/s",
        "Why do producers refuse reports, or edges reject what producers have stored?",
        {"{{reason}}": "sum by (reason) (rate(deniable_producer_refused_total))",
         "{{reason}}, by the edge": "sum by (reason) (rate(deniable_producer_rejected_total))"}),
    Panel("Reports in a pack", "suffix: reports",
        "Are packs large enough? Packs of all collections. A small one costs workers as much as a large one: "
        "raise `pack_seconds`.",
        {"acknowledged":  # as packs have no collection, reports of all: in full, so not narrowed
            'sum(rate(deniable_producer_reports_total{job=~"$job",result="acknowledged"}'
            "[$__rate_interval])) / sum(rate(deniable_producer_packs_total))"},
        explained=("deniable_producer_packs_total",)),
    Panel("Largest outbox", "bytes", "Will reports be dropped?",
        {"of one producer": "max(deniable_producer_outbox_bytes)"}),
    Panel("Oldest pack in an outbox", "s", "Will reports expire before they are sent?",
        {"of all producers": "max(deniable_producer_outbox_age_seconds)"}),
    Panel("Packs that wait", "suffix: packs", "Do packs wait, or can they never be sent?",
        {"in outboxes": "sum(deniable_producer_outbox_packs)",
         "unsendable": "sum(deniable_producer_outbox_unsendable_packs)"}),
    Panel("Producers with other parameters", "suffix: producers",
        "Do workers reject a collection's reports for its parameters?",
        {"{{collection}}": "sum by (collection) (deniable_producer_parameters_differ)"}),
    Panel("Producers without their budget store", "suffix: producers",
        "Do reports of clients wait, or get dropped?",
        {"all producers": "sum(deniable_producer_budget_store_away)"}),
    Panel("Sent", "Bps", "How much network traffic do producers cause?",
        {"all producers": "sum(rate(deniable_producer_sent_bytes_total))"}),
)
