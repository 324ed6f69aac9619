"""What must hold, the tests that hold it, and how often the campaigns among them run.

A requirement without a test fails here, and so do a test that is gone, a count that is not the one that runs, and a campaign
that is not in the list.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.campaigns import campaigns_in, names_used, tree_of

ROOT = Path(__file__).parent
CODE = {path: path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py")}
for _own in ("counts.py", "test_requirements.py"):
    del CODE[ROOT / _own]

MUST_HOLD = {
    "texts from outside are cleaned where they are shown and marked in results; webhooks do not pose as alerts": [
        "market/test_foreign_text.py::test_no_character_of_an_invisible_category_is_left",
        "cli/test_foreign_text.py::test_attack_escape_sequences_in_texts_that_commands_print",
        "cli/test_foreign_text.py::test_attack_escape_sequences_in_texts_of_the_live_view",
        "cli/test_foreign_text.py::test_attack_hidden_text_in_results",
        "gateway/webhooks/test_inbound.py::test_attack_webhook_that_poses_as_an_alert_of_the_desk",
    ],
    "a restore takes nothing but the files of the manifest; the parts of a desk are listed and looked up": [
        "cli/test_backup.py::test_attack_backup_with_links_and_files_that_nobody_copied",
        "test_parts.py::test_the_list_of_parts_is_valid_cyclonedx",
        "test_parts.py::test_a_database_that_cannot_be_reached_is_said_loudly_and_does_not_fail",
    ],
    "fifty questions of a person are answered by one call each, with no arithmetic left to the caller": [
        "servers/test_questions.py::test_every_question_is_answered_by_its_call",
        "servers/test_price_figures.py::test_the_range_of_a_year_and_changes_over_periods",
        "servers/test_account_figures.py::test_balance_and_positions_add_up",
        "signals/test_reading.py::test_the_newest_bar_of_each_crossing",
    ],
    "a chart shows its caller's own account, as known at the desk's time, and is drawn if the account cannot be read": [
        "servers/test_chart_trades.py::test_a_chart_shows_what_the_callers_own_tools_return",
        "servers/test_chart_trades.py::test_a_principal_sees_its_own_and_what_its_scopes_allow",
        "servers/test_chart_trades.py::test_an_earlier_clock_shows_what_was_known_then",
        "servers/test_chart_trades.py::test_a_chart_is_drawn_when_the_records_fail_and_says_so",
        "charts/test_account_overlay.py::test_every_fill_is_counted_once",
    ],
    "with the session regular, bars and indicators are those of the minutes of regular hours, and the result says so": [
        "desk/test_charts.py::test_bars_and_indicators_are_those_of_the_minutes_of_regular_hours",
        "servers/test_chart_trades.py::test_the_session_is_in_the_result_of_every_format",
        "servers/test_chart_trades.py::test_the_picture_of_regular_hours_says_so",
    ],
    "bars that were lost in files or in InfluxDB become gaps, and no larger bar is made of part of its minutes": [
        "stores/loss_contract.py::test_what_is_dropped_becomes_a_gap",
        "stores/loss_contract.py::test_an_older_copy_lacks_only_its_last_days",
        "stores/loss_contract.py::test_a_larger_bar_is_never_made_of_part_of_its_minutes",
        "cli/test_doctor_of_stores.py::test_lost_imports_are_named_until_they_are_there_again",
        "cli/test_doctor_of_stores.py::test_a_collector_fetches_lost_minutes_again",
    ],
    "doctor tries what the desk writes and, without --mend, changes nothing": [
        "cli/test_doctor_of_stores.py::test_it_changes_nothing_in_a_home",
        "cli/test_doctor_of_stores.py::test_it_changes_nothing_in_the_databases",
        "cli/test_doctor_of_stores.py::test_a_full_disk_is_bad",
        "cli/test_doctor_of_stores.py::test_a_role_that_may_only_read_is_bad",
        "cli/test_doctor_of_stores.py::test_an_influxdb_user_that_may_only_read_is_bad",
    ],
    "a backup of a working desk is whole, a killed one is no backup, and an older ledger is not used silently": [
        "cli/test_backup.py::test_backups_while_orders_are_placed_and_minutes_collected",
        "cli/test_backup.py::test_bars_that_are_written_during_a_backup_are_in_it_or_gaps",
        "cli/test_backup.py::test_a_restored_desk_gives_the_same_answers",
        "cli/test_backup.py::test_a_damaged_copy_is_refused_and_nothing_is_changed",
        "cli/test_backup.py::test_an_older_copy_is_not_used_silently",
        "cli/test_backup.py::test_a_backup_that_is_killed_leaves_nothing_to_restore",
        "cli/test_backup.py::test_a_restore_that_is_killed_leaves_the_old_home_or_the_new_one",
    ],
    "backtests equal raptorbt on real prices, on trades and return to 1e-9": [
        "backtest/test_raptorbt.py::test_long_trades_and_equity_equal_raptorbts",
        "backtest/test_raptorbt.py::test_short_trades_and_their_compounded_return_equal_raptorbts",
        "backtest/test_metrics.py::test_figures_on_real_prices_equal_raptorbts",
    ],
    "no figure of a backtest is NaN or infinite, and the same backtest gives the same bytes": [
        "backtest/test_metrics.py::test_every_figure_is_finite_or_none_and_the_same_call_gives_the_same_bytes",
        "backtest/test_outcome.py::test_every_fact_is_that_of_a_loop",
    ],
    "a date range of a backtest is honoured to the bar": [
        "backtest/test_runs.py::test_a_range_is_honoured_to_the_bar",
        "backtest/test_runs.py::test_later_bars_change_nothing_and_earlier_ones_only_warm_up",
    ],
    "a walk-forward test never looks ahead, and refuses a strategy whose out-of-sample Sharpe falls by more than half": [
        "backtest/test_walk_forward.py::test_cutting_the_bars_after_a_window_changes_nothing_in_it",
        "backtest/test_walk_forward.py::test_the_choice_of_a_window_does_not_depend_on_its_test_part",
        "backtest/test_walk_forward.py::test_one_whose_sharpe_falls_by_more_than_half_is_refused",
    ],
    "simulations of trades are equal to the bit for equal seeds": [
        "backtest/test_monte_carlo.py::test_it_is_the_plain_loop_and_the_same_seed_gives_the_same_bytes"
    ],
    "a backtest equals the matcher trade for trade, and is equal to the bit with numba and with numpy": [
        "backtest/test_engine.py::test_every_trade_is_that_of_the_matcher",
        "backtest/test_engine.py::test_both_kernels_return_the_same_bits_and_the_same_call_does_too",
        "backtest/test_curve.py::test_random_runs_have_equal_bits",
    ],
    "a strategy fitted to noise is not promoted: of a thousand random specs on random walks at most 1 % reach VALIDATED": [
        "backtest/test_search.py::test_strategies_without_skill_are_not_validated",
        "backtest/test_search.py::test_the_library_on_random_walks_without_costs_is_not_validated_by_luck",
    ],
    "submit_new_spec → backtest → promotion → signal → consensus → paper order with its ledger chain, on PostgreSQL": [
        "servers/test_strategies_end_to_end.py::test_a_spec_becomes_an_order_with_its_ledger_chain"
    ],
    "a backtest over gRPC equals one in this process to the bit, on a real socket": [
        "gateway/test_backtester.py::test_every_kind_of_job_has_the_same_result_as_in_this_process_to_the_bit",
        "desk/test_backtests.py::test_a_desk_answers_the_same_with_a_service_and_without",
        "desk/test_backtests.py::test_the_command_uses_the_service",
    ],
    "a backtest that is cancelled or over its deadline stops computing, here and at the service": [
        "gateway/test_backtester.py::test_a_cancelled_job_stops_computing",
        "gateway/test_backtester.py::test_a_job_over_its_deadline_stops_computing",
        "gateway/test_backtester.py::test_a_client_that_ends_stops_its_job",
        "desk/test_backtests.py::test_a_job_in_this_process_stops_when_its_caller_is_cancelled_or_too_slow_or_the_desk_closes",
    ],
    "the backtester is killed, drained, restarted, missing and busy": [
        "gateway/test_backtester.py::test_a_service_that_is_killed_in_the_middle_is_unavailable_and_leaves_no_worker",
        "gateway/test_backtester.py::test_a_request_that_was_sent_is_not_sent_again_to_a_service_that_comes_back",
        "gateway/test_backtester.py::test_a_signal_lets_running_jobs_finish_and_refuses_new_ones",
        "gateway/test_backtester.py::test_a_port_on_which_nothing_listens_is_unavailable",
        "gateway/test_backtester.py::test_requests_beyond_the_limit_are_refused_at_once_and_others_wait",
    ],
    "TLS with client certificates, and at most three connections": [
        "gateway/test_backtester.py::test_tls_with_a_client_certificate",
        "gateway/test_backtester.py::test_many_jobs_at_once_use_at_most_three_connections",
    ],
    "a client signs its user in with OAuth 2.1: the SDK's own client, by hand, and in a real browser": [
        "gateway/oauth/test_flow.py::test_the_client_of_the_sdk_signs_in_and_refreshes",
        "gateway/oauth/test_flow.py::test_a_user_gives_a_client_access",
        "gateway/oauth/test_flow.py::test_the_flow_works_on_postgresql",
        "gateway/oauth/test_browser.py::test_a_person_grants_a_part_of_what_was_asked",
    ],
    "a code, a refresh token and a consent form have one user, also if several processes race": [
        "stores/access/test_access.py::test_of_several_processes_exactly_one_wins",
        "gateway/oauth/test_attacks_on_tokens.py::test_code_replay_at_once",
        "gateway/oauth/test_attacks_on_tokens.py::test_refresh_reuse_revokes_the_family",
        "gateway/oauth/test_attacks_on_consent.py::test_consent_sent_twice_at_once",
    ],
    "guessing a passphrase locks the user and the address, in all processes together": [
        "stores/access/test_access.py::test_guesses_of_several_processes_share_one_count",
        "gateway/oauth/test_attacks_on_consent.py::test_guessing_at_once_and_at_two_gateways_has_no_more_tries",
    ],
    "a revoked token or user is refused within a second by every gateway": [
        "gateway/oauth/test_flow.py::test_a_removed_user_is_noticed_by_another_gateway",
        "gateway/oauth/test_flow.py::test_a_revoked_token_ends_all_tokens_of_its_consent",
    ],
    "hostile requests to the backtester (10,000 fuzzed): each is refused or runs": [
        "backtest/test_wire.py::test_fuzzed_requests_run_or_are_refused"
    ],
    "a row of a sweep is its backtest to the bit, and the same bytes come from threads, processes and Dask": [
        "backtest/test_sweeps.py::test_each_row_is_its_backtest_alone",
        "backtest/test_sweeps.py::test_random_strategies_have_the_rows_of_their_backtests",
        "backtest/test_sweeps.py::test_chunks_and_threads_give_the_same_bytes",
        "backtest/test_sweeps.py::test_processes_give_the_same_bytes",
        "desk/test_sweeps.py::test_dask_gives_the_same_bytes",
    ],
    "a sweep that is cancelled, interrupted or loses its workers ends, and so do its processes": [
        "desk/test_sweeps.py::test_a_cancelled_sweep_stops_its_work",
        "cli/test_sweep.py::test_ctrl_c_ends_the_command_and_its_processes",
        "desk/test_sweeps.py::test_a_process_that_is_killed_is_an_error_and_no_hang",
        "desk/test_sweeps.py::test_a_scheduler_that_ends_is_an_error_and_no_hang",
    ],
    "the best of noise has no edge, and a real edge is found": [
        "backtest/test_overfitting.py::test_the_best_of_noise_is_near_or_below_one_half",
        "backtest/test_overfitting.py::test_noise_is_near_one_half_and_an_edge_near_zero",
        "backtest/test_overfitting.py::test_an_edge_is_found",
        "backtest/test_edge.py::test_coins_pass_as_often_as_luck_permits",
        "backtest/test_edge.py::test_trading_in_wild_times_is_no_skill",
        "backtest/test_edge.py::test_a_strategy_that_knows_the_next_close_a_little_better_than_a_coin_is_proven",
        "backtest/test_search.py::test_the_library_in_markets_that_rise_is_not_validated",
    ],
    "a submitted spec is validated by bars after its submission only": [
        "servers/test_strategies_end_to_end.py::test_a_spec_becomes_an_order_with_its_ledger_chain",
        "backtest/test_search.py::test_constants_that_were_fitted_on_all_bars_are_not_validated",
    ],
    "the key of chart images is in no log, error or result, even if the vendor echoes it": [
        "desk/chart_image/test_vendor.py::test_an_echoed_key_is_nowhere",
        "desk/test_settings.py::test_the_key_of_chart_images_is_not_sent_without_tls",
    ],
    "the documentation of chart images is at most a day old, or says that it is not": [
        "desk/chart_image/test_documentation.py::test_the_page_is_fetched_once_a_day",
        "desk/chart_image/test_documentation.py::test_an_old_copy_is_better_than_none",
        "desk/chart_image/test_documentation.py::test_a_useless_page_is_a_failure",
        "desk/chart_image/test_documentation.py::test_a_broken_page_takes_linear_time",
    ],
    "exchanges and symbols of chart images are at most an hour old, or say how old they are": [
        "desk/chart_image/test_directory.py::test_a_list_is_kept_for_an_hour",
        "desk/chart_image/test_directory.py::test_a_failing_vendor_leaves_the_copy_with_its_age",
        "desk/chart_image/test_directory.py::test_it_lists_what_it_knows_and_says_so",
    ],
    "a chart config means the same to this desk and to the vendor": [
        "charts/config/test_vendor_form.py::test_what_is_sent_is_read_as_the_same_config",
        "charts/config/test_vendor_form.py::test_settling_keeps_everything_that_the_config_has",
    ],
    "requests to the vendor of chart images stay within rate and quota of the plan, in all processes together": [
        "desk/chart_image/test_vendor.py::test_requests_stay_below_rate_and_burst",
        "desk/chart_image/test_vendor.py::test_the_51st_request_of_a_basic_day_is_refused_here",
        "desk/chart_image/test_day_count.py::test_several_at_once_get_exactly_the_plans_number",
    ],
    "each row of the five contracts has a test or a reason, in the order of its page": [
        "contracts/test_rows.py",
        "contracts/test_chart_signals.py",
        "contracts/test_tradestream.py",
        "contracts/test_arche.py",
        "contracts/test_chart_image.py",
        "contracts/test_chartgen.py",
    ],
    "the four interaction patterns of chart-image: without a key, with a self-hosted API, with a vendor that fails": [
        "servers/test_chart_image_patterns.py::test_pattern_1_simple_chart_generation",
        "servers/test_chart_image_patterns.py::test_pattern_2_exploration_first",
        "servers/test_chart_image_patterns.py::test_pattern_3_documentation_driven",
        "servers/test_chart_image_patterns.py::test_pattern_4_iterative_refinement",
        "servers/test_chart_image_patterns.py::test_each_failure_of_the_vendor_has_its_answer",
        "servers/test_chart_image_patterns.py::test_a_failure_that_passes_is_not_seen",
    ],
    "at least 70 of the vendor's studies are drawn: all 93 of the catalogue, and each kind of drawing": [
        "servers/test_chart_image.py::test_all_studies_of_the_vendor_are_drawn",
        "gateway/chart_img/test_vendor_client.py::test_every_study_and_every_drawing_is_drawn",
    ],
    "10,000 fuzzed sentences and configs: a config, a warning or a typed error, never a crash, never over 200 ms": [
        "charts/language/test_construct.py::test_no_sentence_breaks_or_delays_it_and_every_config_is_valid",
        "servers/test_chart_image_fuzz.py::test_any_config_is_a_chart_a_warning_or_a_typed_error",
        "servers/test_chart_image_fuzz.py::test_a_huge_config_is_validated_in_time_and_its_answer_is_short",
    ],
    "stored chart images are served until they expire, to whoever has the name, and never half": [
        "servers/test_chart_image.py::test_a_stored_picture_is_in_the_home_and_served_until_its_time",
        "servers/test_chart_image.py::test_expired_and_interrupted_files_are_removed_and_new_ones_of_other_writers_are_not",
        "servers/test_chart_image.py::test_a_picture_has_its_name_only_when_it_is_whole",
        "servers/test_chart_image.py::test_two_processes_store_at_once_and_killing_them_leaves_no_broken_picture",
        "servers/test_chart_image.py::test_a_full_store_is_said_and_pictures_are_still_drawn",
        "gateway/chart_img/test_charts.py::test_a_stored_picture_is_served_without_a_token_until_it_expires",
        "gateway/chart_img/test_charts.py::test_other_names_are_not_found",
    ],
    "a chart image of an earlier time shows nothing later, and simulated bars are named in it": [
        "servers/test_chart_image.py::test_a_picture_of_an_earlier_time_shows_nothing_later",
        "servers/test_chart_image.py::test_with_a_key_an_earlier_time_is_drawn_here_and_that_is_said",
        "servers/test_chart_image.py::test_simulated_bars_have_a_badge_in_the_picture_and_a_name_in_the_metadata",
    ],
    "the chart API has the vendor's keys, errors and limits of each plan, and records its calls without the key": [
        "gateway/chart_img/test_keys.py",
        "gateway/chart_img/test_plans.py",
        "gateway/chart_img/test_charts.py",
    ],
    "hostile specs (10,000 fuzzed): a typed refusal each, no code is run, no hang": [
        "strategies/test_reading.py::test_hostile_specs_are_refused_or_run"
    ],
    "strategies never look ahead": [
        "strategies/test_evaluation.py::test_random_specs_never_look_ahead",
        "strategies/test_library.py::test_none_looks_ahead",
        "strategies/test_evaluation.py::test_a_strategy_that_looks_ahead_on_purpose_is_found",
    ],
    "strategies, rankings and backtests answer the contracts, with every declared error": [
        "servers/test_strategy.py::test_results_fit_the_contracts_and_name_their_source",
        "servers/test_strategy.py::test_every_declared_error_is_raised",
        "servers/test_strategy.py::test_a_backtest_honours_its_dates_to_the_bar_and_equals_the_engine",
        "servers/test_strategy.py::test_performance_depends_on_the_period_and_adds_up_by_month",
        "servers/test_strategy.py::test_the_list_of_strategies_is_paged_and_ranked_by_the_metric",
    ],
    "results and errors of the server arche are of its manifest's schemas, for 5,000 requests of all kinds": [
        "servers/test_arche.py::test_every_result_is_of_the_manifests_schema_and_every_error_of_its_own",
        "servers/test_arche.py::test_the_methods_are_served_over_json_rpc_with_the_manifests_schemas",
        "gateway/quotes/test_openapi.py::test_no_request_is_a_server_error_and_every_response_is_as_documented",
        "desk/arche/test_requests.py::test_any_parameters_are_a_request_or_a_validation_error",
    ],
    "quotes: 1 to 50 tickers in any case, each once, unknown ones left out with 206, none known is SYMBOL_NOT_FOUND": [
        "desk/arche/test_requests.py::test_tickers_are_read_in_any_case_and_form_and_each_once_in_their_order",
        "desk/arche/test_requests.py::test_fifty_tickers_are_the_most_on_both_paths",
        "desk/arche/test_live.py::test_unknown_tickers_are_left_out_with_status_206",
        "desk/arche/test_live.py::test_a_stale_price_is_no_quote",
        "desk/arche/test_pages.py::test_unknown_tickers_are_left_out_with_status_206",
    ],
    "ranges of quotes are inclusive and bounded, pages complete and disjoint, their total exact": [
        "desk/arche/test_requests.py::test_a_range_has_both_of_its_days",
        "desk/arche/test_requests.py::test_a_range_has_at_most_365_days",
        "desk/arche/test_requests.py::test_from_after_to_is_refused",
        "desk/arche/test_pages.py::test_pages_are_complete_disjoint_and_ordered_and_their_total_is_exact",
        "desk/arche/test_pages.py::test_a_new_or_changed_bar_is_counted_at_once",
        "desk/arche/test_pages.py::test_a_page_reads_its_days_and_not_the_range",
    ],
    "prices of quotes are decimal strings with the feed's own digits": [
        "desk/arche/test_live.py::test_prices_have_the_shortest_digits_of_the_same_number_and_no_exponent",
        "desk/arche/test_live.py::test_a_quote_has_the_price_and_the_volume_of_get_current_price",
        "desk/arche/test_pages.py::test_an_item_is_the_whole_bar",
    ],
    "a quotes API that times out, refuses, breaks off, or sends a page, half a JSON, 401, 429 or 5xx is the right error": [
        "servers/test_arche_upstreams.py::test_a_reported_error_keeps_its_type_and_status",
        "servers/test_arche_upstreams.py::test_a_wrong_response_is_the_right_error",
        "servers/test_arche_upstreams.py::test_an_api_that_never_answers_is_a_network_error_in_time",
        "servers/test_arche_upstreams.py::test_a_port_on_which_nothing_listens_is_a_network_error",
        "servers/test_arche_upstreams.py::test_a_message_is_bounded_clean_and_without_the_key",
        "servers/test_arche_upstreams.py::test_retry_after_is_read_in_seconds_and_as_a_date",
    ],
    "the server arche answers the same through the gateway of its home and alone, and no stale gateway.json does harm": [
        "gateway/quotes/test_gateway_file.py::test_the_answers_through_the_gateway_are_those_of_the_own_process",
        "gateway/quotes/test_gateway_file.py::test_the_file_of_a_killed_gateway_does_no_harm",
        "gateway/quotes/test_gateway_file.py::test_a_program_that_has_taken_the_port_is_asked_once_and_ignored",
        "gateway/quotes/test_gateway_file.py::test_a_gateway_with_other_answers_is_not_asked",
    ],
    "the quotes API has tokens or keys, rate limits with headers, validators of the content and one form of errors": [
        "gateway/quotes/test_http.py::test_wrong_and_contradicting_tokens_are_refused",
        "gateway/quotes/test_http.py::test_a_client_that_has_the_answer_gets_304",
        "gateway/quotes/test_http.py::test_refusals_of_the_guard_have_the_envelope_too",
        "gateway/quotes/test_rates.py::test_what_is_left_is_told_until_nothing_is",
        "gateway/quotes/test_rates.py::test_both_paths_together_have_a_limit_and_refused_requests_count_for_none",
    ],
    "the manifest is made of the tools, and its version is the one that its changes need": [
        "servers/test_arche_manifest.py::test_the_file_is_what_the_tools_are",
        "servers/test_arche_manifest.py::test_the_version_is_the_one_that_the_changes_since_the_last_release_need",
        "servers/test_arche_manifest.py::test_a_change_needs_its_version_and_no_lower_one_is_enough",
        "servers/test_arche.py::test_metadata_has_the_limits_that_hold",
    ],
    "the contract's quick start answers in an empty home": [
        "contracts/test_chart_signals.py::test_the_quick_start_is_answered"
    ],
    "signals equal an independent calculation to 1e-9 at every timeframe": [
        "servers/test_chart_signals.py::test_signals_equal_an_independent_calculation_at_every_timeframe",
        "signals/test_series.py::test_is_the_independent_calculation",
    ],
    "crossings are exactly the contract's formulas, inclusive bounds included": [
        "signals/test_crossings.py::test_exactly_the_contracts_formulas",
        "signals/test_crossings.py::test_the_rsi_levels_are_inclusive",
    ],
    "the same call gives the same bytes": ["servers/test_chart_signals.py::test_the_same_question_has_the_same_bytes"],
    "a partial bucket is never used; 34 bars are not ready, 35 are": [
        "servers/test_chart_signals.py::test_34_closed_bars_are_not_ready_and_35_are",
        "market/test_resample.py::test_a_bucket_is_never_shown_before_its_end",
    ],
    "sessions agree with exchange_calendars for every minute of 2015–2027": [
        "market/test_sessions.py::test_regular_minutes_are_exactly_those_of_the_exchange"
    ],
    "market status on holidays, half days, daylight saving and weekends": [
        "servers/test_chart_signals.py::test_market_status"
    ],
    "every error code arrives as a JSON-RPC error": [
        "servers/test_chart_signals.py::test_every_error_code_arrives_as_a_json_rpc_error",
        "servers/test_chart_signals.py::test_a_store_that_cannot_be_used_is_market_data_unavailable",
    ],
    "any number of servers on one home beside the collector": [
        "servers/test_chart_signals.py::test_many_servers_share_one_home",
        "cli/test_commands.py::test_servers_answer_beside_a_collector",
    ],
    "kill -9 of the collector: no acknowledged bar lost, none double": [
        "stores/test_crash.py::test_a_killed_collector_loses_and_doubles_nothing",
        "stores/test_crash.py::test_a_killed_writer_loses_nothing_that_it_acknowledged",
    ],
    "every feed passes one suite": ["feeds/test_contract.py::TestSim", "feeds/test_contract.py::TestReplay"],
    "every bar store passes one suite": [
        "stores/test_parquet.py::TestParquetStore",
        "stores/contract.py::test_a_reader_that_reads_only_changes_sees_everything",
    ],
    "no indicator sees the future": [
        "indicators/test_every_indicator.py::test_never_sees_the_future",
        "indicators/test_every_indicator.py::test_what_comes_later_changes_nothing",
        "indicators/test_signals_at_prefixes.py",
    ],
    "every indicator agrees with its reference to 1e-9": [
        "indicators/test_reference_table.py::test_every_indicator_has_a_reference",
        "indicators/test_reference_table.py::test_every_indicator_is_compared_on_real_prices",
        "indicators/test_reference_table.py::test_every_line_equals_its_reference_but_for_the_named_differences",
    ],
    "Wilder's RSI, population Bollinger, session VWAP, Ichimoku displaced, pivots of the prior session": [
        "indicators/test_references.py::test_wilders_own_worksheet",
        "indicators/test_references.py::test_bands_use_the_populations_deviation",
        "indicators/test_references.py::test_vwap_of_stocks_is_that_of_the_regular_session",
        "indicators/test_overlays.py::test_a_displacement_of_26_is_25_bars",
        "indicators/test_overlays.py::test_is_the_prior_sessions_by_the_exchanges_calendar",
        "indicators/test_regular_hours.py::test_pivots_are_those_of_the_daily_bars_at_every_timeframe",
        "desk/test_charts.py::test_vwap_and_bands_are_those_of_the_minutes",
    ],
    "golden scenes as text, golden pixels with tolerance, a picture of the difference": [
        "charts/test_golden.py::test_the_display_list_equals_the_golden_file",
        "charts/test_golden.py::test_the_pixels_equal_the_golden_picture",
    ],
    "10,000 fuzzed chart requests, each a chart or a typed error, within 2 s and 300 MB": [
        "servers/test_chartgen.py::test_fuzzed_requests_are_a_chart_or_an_error"
    ],
    "all live feeds pass the feeds' suite against a local vendor, faults included": [
        "feeds/test_alpaca.py::TestAlpaca",
        "feeds/test_exchange.py::TestCcxt",
        "feeds/test_yahoo.py::TestYahoo",
        "feeds/test_yahoo.py::test_after_random_faults_the_store_equals_yahoos_bars",
        "feeds/test_alpaca.py::test_after_random_faults_the_store_equals_the_vendors_bars",
        "feeds/test_exchange.py::test_random_faults_cause_no_missing_duplicate_or_uncorrected_bar",
    ],
    "InfluxDB passes the stores' suite": ["stores/test_influx.py::TestInfluxStore"],
    "the store is killed, stopped, restarted and filled by two writers": [
        "stores/test_influx.py::test_no_acknowledged_bar_is_lost_when_the_server_is_killed",
        "stores/test_influx.py::test_a_server_that_does_not_answer_raises_a_timeout",
        "stores/test_influx.py::test_small_writes_succeed_during_an_outage_and_are_copied_later",
        "stores/test_influx.py::test_two_writers_of_one_home_store_the_same_bars",
    ],
    "answers from Parquet and InfluxDB are equal": ["stores/test_influx.py::test_parquet_and_influxdb_answer_the_same"],
    "every error code of market-data is really raised": [
        "servers/test_market_data.py::test_every_mistake_has_its_code",
        "servers/test_market_data.py::test_old_and_few_bars_have_their_codes",
        "servers/test_market_data.py::test_a_store_that_is_gone_is_a_database_error",
        "servers/test_market_data.py::test_a_call_that_takes_too_long_is_a_time_out",
    ],
    "docs/indicators.md is what the registry says": ["cli/test_reference.py::test_generated_pages_are_up_to_date"],
    "the records pass one suite on SQLite and on PostgreSQL": [
        "stores/records/test_records.py::TestSqlite",
        "stores/records/test_records.py::TestPostgres",
        "stores/records/test_migrations.py::test_an_empty_database_is_migrated_to_the_tables",
        "stores/records/contract.py::test_a_killed_writer_loses_nothing_that_it_acknowledged",
    ],
    "pools of two to ten connections, idle and connect bounded": [
        "stores/records/test_postgres.py::test_the_least_number_of_connections_is_opened_and_kept",
        "stores/records/test_postgres.py::test_there_are_never_more_connections_than_the_most_and_callers_wait",
        "stores/records/test_postgres.py::test_idle_connections_beyond_the_least_are_closed",
        "stores/records/test_postgres.py::test_a_server_that_does_not_answer_raises_a_timeout_within_its_bound",
    ],
    "UNAUTHORIZED and ACCOUNT_NOT_FOUND are real": [
        "servers/test_portfolio.py::test_a_guarded_account_wants_its_token",
        "servers/test_portfolio.py::test_an_account_that_is_not_there_is_named_with_what_makes_it",
    ],
    "the order's states as they are written down": [
        "trading/test_orders.py::test_a_state_may_become_what_the_table_says_and_nothing_else",
    ],
    "honest fills on paper": [
        "trading/test_paper.py::test_a_market_order_fills_at_the_next_bars_open",
        "trading/test_paper.py::test_a_limit_fills_only_when_the_price_trades_through_it",
        "servers/test_portfolio.py::test_positions_are_what_the_bars_fees_and_slippage_make_them",
    ],
    "orders at Alpaca behind the same port": [
        "desk/trading/test_alpaca_desk.py::test_an_order_whose_answer_was_lost_is_found_and_never_sent_again",
        "brokers/test_alpaca.py",
    ],
    "positions and balance equal a replay of the ledger": [
        "desk/trading/test_simulation.py::test_on_paper_no_order_is_lost_or_doubled",
        "trading/test_book.py",
    ],
    "max_size is the largest size that would pass, exactly": [
        "servers/test_portfolio.py::test_exactly_the_largest_size_may_be_placed_and_not_a_hundred_millionth_more",
        "trading/test_risk.py",
    ],
    "alerts fire once, at the bar at which they become true, never on history": [
        "desk/trading/test_alert_engine.py::test_exactly_the_alerts_that_came_true_fire_each_at_its_bar",
        "servers/test_chartgen_alerts.py::test_a_signal_from_before_never_fires_however_much_of_it_a_chart_still_shows",
    ],
    "the inbox: at least once, cursor and acknowledgement": [
        "servers/test_at_least_once.py::test_a_notification_whose_answer_never_left_is_told_again",
        "servers/test_chartgen_alerts.py::test_a_cursor_tells_again_until_it_is_acknowledged",
    ],
    "pushes on stdio, kept for an hour and a thousand, through restarts": [
        "servers/test_chartgen_alerts.py::test_what_fires_while_the_clock_runs_is_pushed_through_the_filters_and_ends_a_wait",
        "servers/test_chartgen_alerts.py::test_the_subscription_and_its_queue_survive_killed_servers",
        "servers/test_chartgen_alerts.py::test_what_waits_too_long_is_not_pushed_any_more",
        "desk/trading/test_queue.py::test_the_newest_thousand_are_queued",
    ],
    "portfolio and decisions to the letter, every code raised": [
        "servers/test_portfolio.py::test_names_schemas_enums_limits_and_defaults_are_the_contracts",
        "servers/test_portfolio.py::test_every_mistake_has_its_code",
        "servers/test_decisions.py::test_names_schemas_enums_limits_and_defaults_are_the_contracts",
        "servers/test_decisions.py::test_a_bad_decision_has_its_code_and_is_not_kept",
    ],
    "chartgen's twelve trading tools need --trade": [
        "servers/test_chartgen_trading.py::test_without_trade_each_says_so_and_charts_work",
    ],
    "100,000 schedules of place, time-out, retry, crash, restart": [
        "desk/trading/test_simulation.py::test_at_a_remote_broker_no_order_is_lost_or_doubled",
        "desk/trading/test_simulation.py::test_on_paper_no_order_is_lost_or_doubled",
    ],
    "10,000 edits, removals, reorders and truncations of the ledger are found": [
        "stores/records/test_verify.py::test_every_edit_removal_reorder_and_truncation_is_found",
        "trading/test_ledger.py",
    ],
    "an engine stopped past its lease writes nothing": [
        "desk/trading/test_fencing.py::test_an_engine_that_was_stopped_past_its_lease_writes_nothing_when_it_goes_on",
        "desk/trading/test_fencing.py::test_stopped_at_any_moment_two_engines_never_write_in_turn",
    ],
    "the risk gate cannot be gone around": [
        "desk/trading/test_gate_paths.py::test_an_order_that_a_rule_refuses_reaches_no_broker_on_any_path",
    ],
    "live with the simulator, replay or --as-of is refused at start": [
        "servers/test_chartgen_trading.py::test_a_broker_without_the_real_market_or_its_keys_is_refused_at_start",
    ],
    "--read-only hides and refuses every write": [
        "servers/test_chartgen_trading.py::test_read_only_hides_and_refuses_every_write_and_lets_one_look",
        "servers/test_chartgen_trading.py::test_nothing_lifts_read_only",
    ],
    "kill -9 of the engine in the middle of fills and alerts": [
        "desk/trading/test_engine_crash.py::test_a_killed_engine_loses_doubles_and_invents_nothing",
    ],
    "no clock runs ahead of the machine's; a replay stops at the present": [
        "cli/test_scenarios.py::test_a_later_clock_is_refused_at_start_and_nothing_is_made",
        "cli/test_scenarios.py::test_a_replay_that_reaches_the_present_stops_there_and_says_so",
    ],
    "nothing unfinished is stored as closed or covered; doctor mends what was": [
        "desk/test_bars.py",
        "cli/test_mend.py::test_doctor_finds_and_mends_what_was_covered_too_early",
    ],
    "the present is moved by the present alone; scenarios have records of their own": [
        "servers/test_nothing_later.py::test_no_tool_of_another_clock_changes_the_present",
        "cli/test_scenarios.py::test_scenarios_do_not_wait_for_each_other",
        "cli/test_scenarios.py::test_scenarios_are_listed_emptied_and_removed",
        "cli/test_scenarios.py::test_the_records_and_answers_of_a_scenario_name_it",
        "cli/test_scenarios.py::test_a_replay_acts_in_a_scenario_whatever_account_is_named",
    ],
    "nothing later than the clock is seen by any tool of any server": [
        "servers/test_nothing_later.py::test_every_tool_has_samples",
        "servers/test_nothing_later.py::test_the_same_question_has_the_same_answer_before_and_after_later_deeds",
        "stores/records/test_snapshots.py::test_an_earlier_view_returns_what_the_present_returned_then",
    ],
    "matching goes on whatever clocks looked; a failing symbol stops no other": [
        "desk/trading/test_present.py::test_a_partly_filled_order_continues_whatever_other_clocks_have_read",
        "desk/trading/test_present.py::test_a_symbol_that_cannot_be_read_delays_only_its_own_orders",
        "desk/trading/test_present.py::test_an_accident_with_one_account_is_noted_and_the_others_are_filled",
        "desk/trading/test_present.py::test_doctor_shows_a_symbol_that_cannot_be_read_until_it_can",
    ],
    "every question and cancellation first catches up with the bars": [
        "cli/test_scenarios.py::test_a_server_of_a_later_clock_finds_an_order_filled_that_was_placed_by_a_call",
        "cli/test_scenarios.py::test_the_present_finds_it_filled_too_whatever_is_asked_first",
        "desk/trading/test_present.py::test_questions_at_the_same_time_share_one_walk",
        "desk/trading/test_present.py::test_what_was_walked_stays_walked_when_the_rest_is_cut_short",
    ],
    "the head covers the ledger's end; every fill is explained": [
        "cli/test_trading_commands.py::test_what_was_added_at_the_end_is_found_though_it_follows_in_every_way",
        "cli/test_trading_commands.py::test_a_checkpoint_that_does_not_follow_from_the_ledger_is_found",
        "trading/test_audit.py",
    ],
    "limits for every account, minute by minute": [
        "desk/trading/test_present.py::test_limits_are_kept_for_every_account_that_is_filled",
        "desk/trading/test_present.py::test_a_halt_ends_what_rests_on_every_account",
        "trading/test_advance.py::test_skipping_quiet_minutes_changes_nothing",
        "trading/test_advance.py::test_two_parts_give_the_same_as_one",
        "trading/test_advance.py::test_the_order_of_symbols_does_not_matter",
    ],
    "every payload names its data, call prints the truth": [
        "servers/test_truth.py::test_payloads_name_their_data",
        "servers/test_truth.py::test_call_prints_the_header_on_standard_error_and_the_result_alone_on_output",
    ],
    "defaults, whole numbers and sources are as the contract says": [
        "servers/test_arguments.py::test_every_default_is_a_value_that_the_schema_takes",
        "servers/test_arguments.py::test_a_whole_number_may_be_written_with_a_point",
        "servers/test_truth.py::test_indicators_say_whether_the_feed_was_asked",
    ],
    "the truth header speaks of the instrument that was asked for": [
        "servers/test_truth.py::test_the_header_speaks_of_the_instrument_that_was_asked_for",
        "servers/test_truth.py::test_the_header_of_a_refusal_does_too",
    ],
    "the total of candles does not depend on what was asked before": [
        "servers/test_market_data.py::test_the_total_does_not_depend_on_what_was_asked_before"
    ],
    "a list that was cut says so": ["servers/test_cut_lists.py::test_each_of_102_open_orders_is_on_one_page"],
    "volume counts only where there is one; an order that waits says why": [
        "trading/test_command_line.py::test_a_forex_order_fills_whole_whatever_its_file_has_as_volume",
        "trading/test_command_line.py::test_an_order_for_a_stock_without_volume_waits",
        "trading/test_command_line.py::test_an_order_outside_the_session_says_when_the_session_opens",
        "trading/test_command_line.py::test_an_order_that_a_halt_holds_back_says_until_when",
        "desk/trading/test_alpaca_desk.py::test_a_working_order_waits_for_the_broker_and_says_so",
        "trading/test_waiting.py",
    ],
    "read-only makes nothing; halting is always allowed": [
        "cli/test_read_only_tools.py::test_no_tool_makes_anything_in_an_empty_home",
        "cli/test_read_only_tools.py::test_no_tool_changes_anything_in_a_used_home",
        "cli/test_read_only_tools.py::test_a_read_only_desk_can_be_halted_and_not_resumed",
        "cli/test_commands.py::test_a_read_only_collector_makes_nothing",
        "cli/test_trading_commands.py::test_a_read_only_desk_lets_nobody_write",
        "cli/test_read_only.py",
    ],
    "a cursor for each connection": [
        "servers/test_connections.py::test_two_clients_each_get_every_notification_once_and_in_order",
        "servers/test_connections.py::test_a_push_to_a_client_that_no_longer_reads_waits_for_the_next_client",
        "servers/test_at_least_once.py::test_a_call_returns_nothing_that_the_answer_before_it_is_about_to",
        "desk/trading/test_queue.py::test_a_slow_connection_gets_what_a_quick_one_has_had",
    ],
    "JSON holds no NaN, arguments are bounded, every id gets one answer": [
        "servers/test_numbers.py",
        "servers/test_arguments.py",
        "protocol/test_stdio.py::test_every_request_gets_one_answer_whatever_ids_are_used",
        "protocol/test_stdio.py::test_fuzzed_lines_never_stop_the_server",
    ],
    "without --trade nothing is sent to a broker": [
        "desk/trading/test_alpaca_desk.py::test_without_trade_only_a_halt_is_sent",
        "desk/trading/test_alpaca_desk.py::test_the_command_halt_cancels_resting_orders_at_the_broker_without_trade",
        "desk/trading/test_alpaca_desk.py::test_without_trade_the_engine_cancels_nothing_at_the_broker",
    ],
    "a position without a price is null with its reason and opens nothing": [
        "servers/test_store_down.py::test_positions_show_the_last_known_price_with_its_time_and_a_note",
        "servers/test_store_down.py::test_the_truth_header_says_it_too",
        "servers/test_store_down.py::test_nothing_is_opened_what_reduces_passes_and_the_refused_id_can_be_used_again",
        "desk/trading/test_present.py::test_nothing_is_opened_while_the_equity_at_midnight_is_not_known",
    ],
    "no short unless it is allowed": [
        "trading/test_never_short.py::test_on_paper_no_position_is_ever_negative",
        "trading/test_command_line.py::test_a_symbol_that_is_not_held_cannot_be_sold_unless_shorts_are_allowed",
        "trading/test_command_line.py::test_selling_more_than_is_held_is_refused_with_the_largest_size",
        "trading/test_command_line.py::test_a_reduce_only_order_never_opens",
    ],
    "price alerts are judged on minutes": [
        "desk/trading/test_alert_engine.py::test_a_price_alert_fires_within_a_minute_whatever_its_interval"
    ],
    "a file of days is not taken as minutes": ["desk/importing/test_timeframes.py", "cli/test_import.py"],
    "a day of 500 symbols, 1,000 resting orders and 10,000 alerts leaves memory and handles level and loses nothing": [
        "operations/test_day.py::test_a_day_leaves_a_desk_as_it_was_and_loses_nothing",
        "operations/test_up.py::test_a_desk_at_work_stays_level_and_loses_nothing",
    ],
    "make up installs what the desk runs on; bench ends with its children; memory stays level": [
        "test_makefile.py::test_up_installs_what_the_desk_runs_on_and_test_adds_the_rest",
        "test_makefile.py::test_the_run_lock_is_the_part_of_the_whole_lock_that_the_desk_and_its_feeds_need",
        "test_makefile.py::test_each_step_is_shown_while_uv_still_works",
        "test_makefile.py::test_pip_installs_where_uv_cannot_be_had",
        "test_bench.py::test_the_orders_of_the_bench_stay_below_the_limit_on_a_machine_that_needs_no_time",
        "test_bench.py::test_every_script_runs_under_the_guard",
        "test_bench.py::test_readers_end_when_their_parent_is_killed",
        "cli/test_garbage.py::test_the_collector_is_on_when_a_command_ends",
        "cli/test_garbage.py::test_the_collector_is_on_while_a_command_runs_until_it_is_stopped",
        "cli/test_garbage.py::test_a_desk_with_resting_orders_on_postgresql_stays_level",
    ],
    "the inspector warns of no server": ["protocol/test_inspector.py::test_no_server_is_warned_of"],
    "the official conformance suite passes against the gateway in every revision that it has, and the docs show it": [
        "gateway/conformance/test_conformance.py::test_every_scenario_passes_and_is_in_the_docs",
        "gateway/conformance/test_conformance.py::test_the_page_is_what_its_table_makes_of_it",
        "gateway/conformance/test_conformance.py::test_every_reason_has_a_check",
        "gateway/conformance/test_conformance.py::test_the_fixed_texts_come_from_the_tools",
        "gateway/conformance/test_conformance.py::test_log_messages_are_sent_only_to_requests_that_want_them",
        "gateway/conformance/test_conformance.py::test_input_is_required_by_a_result_and_not_by_a_request",
    ],
    "the inspector lists and calls tools over HTTP without a warning": [
        "gateway/clients/test_clients.py::test_the_inspector_lists_and_calls_tools_over_http_in_both_eras"
    ],
    "real clients connect to every server over stdio and HTTP, and SDKs call a tool in both eras": [
        "gateway/clients/test_clients.py::test_both_versions_of_the_typescript_sdk_list_and_call_tools",
        "gateway/clients/test_clients.py::test_pydantic_ai_lists_and_calls_tools_in_both_eras",
        "gateway/clients/test_clients.py::test_opencode_connects_to_every_server",
        "gateway/clients/test_clients.py::test_claude_code_connects_to_every_server",
    ],
    "stopping in the middle of the first fetch is clean": [
        "servers/test_hostile_homes.py::test_stopping_in_the_middle_of_the_first_fetch_is_clean"
    ],
    "native series of every timeframe pass one suite on Parquet, on InfluxDB and read-only": [
        "stores/test_parquet.py::TestNativeSeries",
        "stores/test_influx.py::TestNativeSeries",
        "stores/test_overlay.py::TestNativeSeries",
        "stores/test_overlay.py::TestNativeSeriesOfTheHome",
    ],
    "kill -9 in the middle of a write of native series loses and doubles nothing": [
        "stores/test_native_crash.py::test_a_killed_writer_of_native_series_loses_nothing_that_it_acknowledged"
    ],
    "kill -9 in the middle of import and backfill: what was printed is stored, the same command completes it": [
        "cli/test_killed_commands.py::test_a_killed_import_keeps_what_it_printed_and_the_same_command_completes_it",
        "cli/test_killed_commands.py::test_a_killed_backfill_keeps_what_it_printed_and_the_same_command_completes_it",
        "stores/test_crash.py::test_the_store_recovers_after_dying_at_any_step",
        "stores/test_influx_replace.py::test_a_replacement_that_is_killed_at_any_step_is_done_by_the_next_one",
    ],
    "prices that are adjusted in different ways are never mixed; the feed is asked once and the user told what to do": [
        "desk/test_series.py::test_a_feed_that_adjusts_otherwise_is_asked_once_and_not_mixed_with_stored_days",
        "cli/test_native_pairs.py::test_a_backfill_of_prices_that_are_adjusted_otherwise_fails_with_what_to_do",
        "cli/test_native_pairs.py::test_a_file_of_yahoo_joins_a_feed_that_adjusts_for_splits_and_no_raw_one",
        "feeds/test_yahoo.py::test_an_imported_file_is_not_joined_to_prices_that_were_adjusted_since",
    ],
    "a file has the adjustment of its format, which an option overrides and an export keeps": [
        "desk/importing/test_file_adjustments.py",
        "cli/test_import.py::test_the_adjustment_can_be_stated_and_check_shows_it",
        "cli/test_history.py::test_an_export_keeps_what_its_prices_are_adjusted_for",
    ],
    "no bar is made of a part of its minutes": ["desk/importing/test_storing.py"],
    "an imported file does not move the equity of an account on a feed": [
        "desk/trading/test_prices.py::test_an_imported_file_does_not_move_the_equity_of_an_account_on_a_feed"
    ],
    "one rule decides what bars are made of; more minutes change no answer": [
        "market/test_series_plan.py::test_every_bar_is_made_of_one_base_the_first_that_covers_it",
        "market/test_series_plan.py::test_more_minutes_change_nothing_that_native_bars_give",
        "market/test_series_plan.py::test_what_is_fetched_covers_every_closed_bar_once",
        "desk/test_series.py::test_an_answer_as_of_a_moment_stays_when_more_is_fetched_and_published",
        "desk/test_series.py::test_native_bars_that_are_cut_at_other_times_are_not_used",
    ],
    "price files of the usual sources import with one command; real ones equal TA-Lib's indicators": [
        "desk/importing/test_formats.py",
        "desk/importing/test_real_files.py",
    ],
    "what is exported imports again to the same bytes; a backfill continues": [
        "cli/test_history.py::test_what_is_exported_imports_again_to_the_same_bytes",
        "cli/test_history.py::test_an_interrupted_backfill_keeps_what_it_has_and_continues",
    ],
    "each asset class may have a feed of its own, which answers name": ["feeds/test_routes.py"],
    "a first chart takes few requests at every vendor, and no tool runs into its timeout": [
        "feeds/test_first_questions.py"
    ],
    "DNS rebinding, foreign origins, path traversal and huge headers are refused before the token": [
        "gateway/guard/test_hosts.py",
    ],
    "oversized and slow bodies, slow headers and request smuggling are refused": ["gateway/guard/test_bodies.py"],
    "header injection and log injection are impossible": [
        "gateway/guard/test_request_ids.py",
        "gateway/guard/test_audit.py::test_attack_log_injection_by_the_name_of_a_tool",
    ],
    "rate limits per principal and class of tools; a flood neither grows memory nor lifts a limit": [
        "gateway/guard/test_limits.py::test_attack_flood_of_principals_does_not_grow_memory",
        "gateway/guard/test_limits.py::test_attack_flood_of_principals_does_not_lift_the_limit_of_another",
        "gateway/guard/test_limits.py::test_attack_system_clock_going_backwards",
    ],
    "300 concurrent clients degrade to typed refusals": [
        "gateway/guard/test_limits.py::test_300_clients_at_once_get_answers_or_typed_refusals"
    ],
    "an audit line for each call without losing one at a clean stop; a full disk stops no call": [
        "gateway/guard/test_audit.py::test_a_clean_stop_loses_no_line",
        "gateway/guard/test_audit.py::test_a_full_disk_stops_no_call_and_warns_once",
    ],
    "metrics have bounded labels and are not served through a proxy; health checks name no secrets": [
        "gateway/guard/test_metrics.py::test_attack_unknown_names_do_not_add_series",
        "gateway/guard/test_metrics.py::test_this_machine_and_administrators_may_read_them",
        "gateway/guard/test_health.py::test_stores_that_cannot_be_reached_are_named_without_secrets",
    ],
    "requests to URLs that others have chosen reach no private network, follow no redirect and are bounded": [
        "gateway/test_outbound.py"
    ],
    "streams end with their tokens, and an event id of another ledger resumes nothing": [
        "gateway/streamable/test_token_rechecks.py::test_the_streams_of_a_removed_token_end_within_a_second_or_two",
        "gateway/streamable/test_token_rechecks.py::test_the_stream_of_an_expired_token_ends",
        "gateway/streamable/test_token_rechecks.py::test_an_event_id_of_another_ledger_begins_a_new_stream",
    ],
    "subscriptions to signals outlast processes, and every gateway process pushes the same alerts": [
        "gateway/streamable/test_signals.py::test_alerts_come_for_what_becomes_true_and_outlast_a_killed_process",
        "gateway/streamable/test_signals.py::test_two_processes_on_one_database_deliver_the_same_signals",
    ],
    "a client that vanishes while it waits loses no notification": [
        "gateway/streamable/test_token_rechecks.py::test_a_client_that_vanishes_while_it_waits_loses_no_notification"
    ],
    "a halt reaches desks on other machines after an outage, and ends with a resume on any of them": [
        "cli/test_halt.py::test_a_halt_reaches_other_machines_when_the_database_is_back_and_ends_with_their_resume"
    ],
    "a program that has taken the port of a killed gateway learns no key and cannot answer in its place": [
        "gateway/quotes/test_gateway_file.py::test_a_program_that_has_taken_the_port_learns_nothing_with_which_it_could_answer"
    ],
    "webhooks arrive at least once, signed, in order and with one id, whatever the receiver does and through kill -9": [
        "gateway/webhooks/test_sender.py",
        "gateway/webhooks/test_kills.py::test_a_killed_sender_loses_nothing_and_keeps_ids_and_order",
        "gateway/webhooks/test_kills.py::test_the_whole_desk_sends_and_sends_again_after_a_kill",
    ],
    "inbound webhooks land in their owner's inbox and the ledger, and hostile ones leave nothing": [
        "gateway/webhooks/test_inbound.py"
    ],
}

DEFECTS_SEEN_ELSEWHERE = {
    "Bollinger upper and lower swapped": [
        "indicators/test_references.py::test_upper_is_never_below_the_middle_nor_that_below_the_lower"
    ],
    "market status on a fixed UTC-5, no holidays, no half days": [
        "market/test_sessions.py::test_a_fixed_offset_from_utc_would_be_wrong_in_summer",
        "market/test_sessions.py::test_half_day",
    ],
    "error codes never emitted": ["servers/test_chart_signals.py::test_every_error_code_arrives_as_a_json_rpc_error"],
    "bad JSON got no reply": ["protocol/test_stdio.py::test_a_bad_line_gets_an_error_and_the_server_lives_on"],
    "notifications got replies": ["protocol/test_stdio.py::test_a_notification_never_gets_a_reply"],
    "aggregated timeframes did not re-check 35 bars": [
        "servers/test_chart_signals.py::test_each_timeframe_counts_for_itself"
    ],
    "the last, partial bar was counted": ["market/test_resample.py::test_a_bucket_is_never_shown_before_its_end"],
    "VWAP had no session reset": ["indicators/test_references.py::test_vwap_of_stocks_is_that_of_the_regular_session"],
    "BTC_USD split on its underscore": ["market/test_instruments.py::test_the_name_on_disk_is_not_split_into_a_stock"],
    "comments in the watchlist became part of a symbol": [
        "servers/test_chart_signals.py::test_the_watchlist_file_rules"
    ],
    "a failed fetch returned made-up data under the real symbol": [
        "desk/test_charts.py::test_a_failed_fetch_is_an_error"
    ],
    "RSI was not Wilder's and had no null warm-up": [
        "indicators/test_references.py::test_wilders_own_worksheet",
        "charts/test_charts.py::test_values_before_warm_up_are_null",
    ],
    "get_candles ignored timeframe and offset and returned the oldest rows": [
        "servers/test_market_data.py::test_pages_put_together_are_the_whole",
        "servers/test_market_data.py::test_candles_are_the_minutes",
    ],
    "cache keys left out arguments": ["servers/test_market_data.py::test_each_argument_has_an_answer_of_its_own"],
    "unescaped query text": ["stores/test_influx.py::test_hostile_text_cannot_change_a_query"],
    "recent decisions were limited to 24 h and sorted by score": [
        "servers/test_decisions.py::test_old_decisions_are_listed_and_sorted_by_time_not_by_score"
    ],
    "declared error codes were never raised": [
        "servers/test_portfolio.py::test_every_mistake_has_its_code",
        "servers/test_decisions.py::test_a_bad_question_has_its_code",
    ],
    "cancel_order could never succeed and nothing ever filled": [
        "servers/test_chartgen_trading.py::test_an_open_order_can_be_cancelled_once",
        "servers/test_chartgen_trading.py::test_fills_fees_and_balance_are_exact",
    ],
    "stale signals in the window fired alerts": [
        "servers/test_chartgen_alerts.py::test_a_signal_from_before_never_fires_however_much_of_it_a_chart_still_shows"
    ],
    "set_alert accepted any symbol, indicator and label": ["servers/test_chartgen_alerts.py::test_nonsense_is_refused"],
    "the offline queue died with the process while subscriptions stayed": [
        "servers/test_chartgen_alerts.py::test_the_subscription_and_its_queue_survive_killed_servers"
    ],
    "a server of the manifest was not JSON-RPC at all": [
        "servers/test_arche.py::test_the_methods_are_served_over_json_rpc_with_the_manifests_schemas"
    ],
    "the range limit was not enforced, and the 50-ticker cap not on historical quotes": [
        "gateway/quotes/test_http.py::test_the_limits_of_a_range_hold_and_the_field_is_named"
    ],
    "an ETag was of the tickers alone": [
        "gateway/quotes/test_http.py::test_the_tag_is_of_the_content_and_not_of_the_tickers",
        "desk/arche/test_live.py::test_the_same_content_has_the_same_tag_and_other_content_another",
    ],
    "bad parameters of quotes were server errors": [
        "gateway/quotes/test_http.py::test_a_bad_query_is_a_validation_error_and_never_a_server_error"
    ],
    "manifest version, metadata and paths drifted apart": [
        "servers/test_arche.py::test_metadata_has_the_limits_that_hold",
        "servers/test_arche_manifest.py::test_the_file_is_what_the_tools_are",
        "gateway/quotes/test_openapi.py::test_the_document_is_served_and_its_shapes_are_the_manifests",
    ],
    "15m was read as 5m": ["charts/language/test_construct.py::test_15m_is_not_read_as_5m"],
    "5 year and gold futures were unreachable": [
        "charts/language/test_construct.py::test_five_years_and_gold_futures_are_reached"
    ],
    "words such as average and index were read as studies": [
        "charts/language/test_construct.py::test_average_and_index_alone_name_no_study"
    ],
    "retries never fired on 429 and 5xx": [
        "desk/chart_image/test_vendor.py::test_retries_fire_on_429_and_5xx",
        "desk/chart_image/test_vendor.py::test_retry_after_is_honoured_within_the_time_limit",
    ],
    "validation of chart configs failed when the docs site was down": [
        "desk/chart_image/test_documentation.py::test_the_catalogue_serves_when_the_docs_site_is_down",
        "desk/chart_image/test_documentation.py::test_without_a_copy_it_is_the_catalogue",
    ],
    "the format of a chart image was never sent": [
        "charts/config/test_vendor_form.py::test_format_is_always_sent",
        "desk/chart_image/test_vendor.py::test_the_format_is_sent_and_jpeg_comes_as_jpeg",
    ],
    "the vendor's expire and message fields were misread": [
        "desk/chart_image/test_vendor.py::test_the_vendors_expiry_is_read_in_every_form",
        "desk/chart_image/test_vendor.py::test_a_refusal_of_the_plan_has_the_vendors_words",
        "desk/chart_image/test_vendor.py::test_a_refused_config_names_its_fields",
    ],
    "two rsi entries with other lengths collided on one key": [
        "servers/test_chartgen.py::test_two_entries_of_one_indicator_have_keys_of_their_own"
    ],
}


COUNTS = {
    "the best of noise has no edge, and a real edge is found": [
        ("backtest/test_search.py::test_the_library_in_markets_that_rise_is_not_validated", "RISING", 3, 100),
        ("backtest/test_edge.py::test_coins_pass_as_often_as_luck_permits", "SERIES", 150, 2000),
        ("backtest/test_edge.py::test_trading_in_wild_times_is_no_skill", "SERIES", 150, 2000),
    ],
    "a submitted spec is validated by bars after its submission only": [
        ("backtest/test_search.py::test_constants_that_were_fitted_on_all_bars_are_not_validated", "FITTED", 4, 60),
    ],
    "no indicator sees the future": [
        (
            "indicators/test_signals_at_prefixes.py::test_of_any_walk_with_any_settings_at_every_prefix",
            "WALKS",
            10,
            200,
        ),
    ],
    "a backup of a working desk is whole, a killed one is no backup, and an older ledger is not used silently": [
        ("cli/test_backup.py::test_a_backup_that_is_killed_leaves_nothing_to_restore", "KILLS", 6, 120),
        ("cli/test_backup.py::test_a_restore_that_is_killed_leaves_the_old_home_or_the_new_one", "KILLS", 6, 120),
    ],
    "results and errors of the server arche are of its manifest's schemas, for 5,000 requests of all kinds": [
        (
            "gateway/quotes/test_openapi.py::test_no_request_is_a_server_error_and_every_response_is_as_documented",
            "CASES",
            120,
            6000,
        ),
        ("desk/arche/test_requests.py::test_any_parameters_are_a_request_or_a_validation_error", "FUZZED", 300, 5000),
    ],
    "ranges of quotes are inclusive and bounded, pages complete and disjoint, their total exact": [
        (
            "desk/arche/test_pages.py::test_pages_are_complete_disjoint_and_ordered_and_their_total_is_exact",
            "PAGES",
            50,
            2000,
        ),
        ("desk/arche/test_pages.py::test_a_new_or_changed_bar_is_counted_at_once", "CHANGES", 30, 300),
    ],
    "a strategy fitted to noise is not promoted: of a thousand random specs on random walks at most 1 % reach VALIDATED": [
        ("backtest/test_search.py::test_strategies_without_skill_are_not_validated", "WITHOUT_SKILL", 100, 1000),
    ],
    "no figure of a backtest is NaN or infinite, and the same backtest gives the same bytes": [
        ("backtest/test_outcome.py::test_every_fact_is_that_of_a_loop", "CASES", 200, 3000),
        (
            "backtest/test_metrics.py::test_every_figure_is_finite_or_none_and_the_same_call_gives_the_same_bytes",
            "FINITE",
            200,
            3000,
        ),
    ],
    "a backtest equals the matcher trade for trade, and is equal to the bit with numba and with numpy": [
        ("backtest/test_engine.py::test_every_trade_is_that_of_the_matcher", "EQUAL_TO_THE_MATCHER", 150, 2000),
        (
            "backtest/test_engine.py::test_both_kernels_return_the_same_bits_and_the_same_call_does_too",
            "EQUAL_KERNELS",
            300,
            3000,
        ),
        ("backtest/test_curve.py::test_random_runs_have_equal_bits", "EQUAL_CURVES", 300, 3000),
    ],
    "hostile requests to the backtester (10,000 fuzzed): each is refused or runs": [
        ("backtest/test_wire.py::test_fuzzed_requests_run_or_are_refused", "FUZZED", 300, 10_000),
    ],
    "a row of a sweep is its backtest to the bit, and the same bytes come from threads, processes and Dask": [
        (
            "backtest/test_sweeps.py::test_random_strategies_have_the_rows_of_their_backtests",
            "RANDOM_SWEEPS",
            25,
            500,
        ),
    ],
    "10,000 fuzzed sentences and configs: a config, a warning or a typed error, never a crash, never over 200 ms": [
        (
            "charts/language/test_construct.py::test_no_sentence_breaks_or_delays_it_and_every_config_is_valid",
            "SENTENCES",
            600,
            10_000,
        ),
        (
            "servers/test_chart_image_fuzz.py::test_any_config_is_a_chart_a_warning_or_a_typed_error",
            "CONFIGS",
            200,
            10_000,
        ),
    ],
    "hostile specs (10,000 fuzzed): a typed refusal each, no code is run, no hang": [
        ("strategies/test_reading.py::test_hostile_specs_are_refused_or_run", "HOSTILE", 1500, 10_000),
    ],
    "strategies never look ahead": [
        (
            "strategies/test_evaluation.py::test_random_specs_never_look_ahead",
            "RANDOM_SPECS",
            300,
            10_000,
        ),
    ],
    "kill -9 in the middle of import and backfill: what was printed is stored, the same command completes it": [
        (
            "cli/test_killed_commands.py::test_a_killed_import_keeps_what_it_printed_and_the_same_command_completes_it",
            "IMPORT_KILLS",
            4,
            150,
        ),
        (
            "cli/test_killed_commands.py::test_a_killed_backfill_keeps_what_it_printed_and_the_same_command_completes_it",
            "BACKFILL_KILLS",
            4,
            120,
        ),
        (
            "stores/test_influx_replace.py::test_a_replacement_that_is_killed_at_any_step_is_done_by_the_next_one",
            "KILLS",
            4,
            100,
        ),
    ],
    "kill -9 in the middle of a write of native series loses and doubles nothing": [
        (
            "stores/test_native_crash.py::test_a_killed_writer_of_native_series_loses_nothing_that_it_acknowledged",
            "NATIVE_KILLS",
            6,
            200,
        ),
    ],
    "kill -9 of the collector: no acknowledged bar lost, none double": [
        ("stores/test_crash.py::test_a_killed_collector_loses_and_doubles_nothing", "COLLECTOR_KILLS", 4, 200),
        ("stores/test_crash.py::test_a_killed_writer_loses_nothing_that_it_acknowledged", "KILLS", 8, 220),
    ],
    "every bar store passes one suite": [
        ("stores/contract.py::test_a_reader_that_reads_only_changes_sees_everything", "MORE", 6, 100),
    ],
    "10,000 fuzzed chart requests, each a chart or a typed error, within 2 s and 300 MB": [
        ("servers/test_chartgen.py::test_fuzzed_requests_are_a_chart_or_an_error", "REQUESTS", 100, 10_000),
    ],
    "all live feeds pass the feeds' suite against a local vendor, faults included": [
        ("feeds/test_yahoo.py::test_after_random_faults_the_store_equals_yahoos_bars", "FAULT_SCHEDULES", 3, 60),
        ("feeds/test_alpaca.py::test_after_random_faults_the_store_equals_the_vendors_bars", "FAULT_SCHEDULES", 4, 60),
        (
            "feeds/test_exchange.py::test_random_faults_cause_no_missing_duplicate_or_uncorrected_bar",
            "FAULT_SCHEDULES",
            3,
            60,
        ),
    ],
    "answers from Parquet and InfluxDB are equal": [
        ("stores/test_influx.py::test_parquet_and_influxdb_answer_the_same", "WRITES", 6, 60),
    ],
    "the records pass one suite on SQLite and on PostgreSQL": [
        (
            "stores/records/contract.py::test_a_killed_writer_loses_nothing_that_it_acknowledged",
            "RecordsContract.kills",
            6,
            200,
        ),
        ("stores/records/test_records.py::TestPostgres", "TestPostgres.kills", 4, 200),
    ],
    "alerts fire once, at the bar at which they become true, never on history": [
        (
            "desk/trading/test_alert_engine.py::test_exactly_the_alerts_that_came_true_fire_each_at_its_bar",
            "SEEDS",
            3,
            60,
        ),
    ],
    "100,000 schedules of place, time-out, retry, crash, restart": [
        (
            "desk/trading/test_simulation.py::test_at_a_remote_broker_no_order_is_lost_or_doubled",
            "SCHEDULES",
            40,
            50_000,
        ),
        ("desk/trading/test_simulation.py::test_on_paper_no_order_is_lost_or_doubled", "SCHEDULES", 40, 50_000),
    ],
    "10,000 edits, removals, reorders and truncations of the ledger are found": [
        (
            "stores/records/test_verify.py::test_every_edit_removal_reorder_and_truncation_is_found",
            "CAMPAIGN",
            60,
            10_000,
        ),
        ("trading/test_ledger.py::test_every_random_manipulation_is_found", "ROUNDS", 500, 10_000),
    ],
    "an engine stopped past its lease writes nothing": [
        ("desk/trading/test_fencing.py::test_stopped_at_any_moment_two_engines_never_write_in_turn", "STOPS", 2, 20),
    ],
    "kill -9 of the engine in the middle of fills and alerts": [
        ("desk/trading/test_engine_crash.py::test_a_killed_engine_loses_doubles_and_invents_nothing", "KILLS", 5, 500),
    ],
    "the present is moved by the present alone; scenarios have records of their own": [
        ("servers/test_nothing_later.py::test_no_tool_of_another_clock_changes_the_present", "PRESENTS", 1, 40),
    ],
    "read-only makes nothing; halting is always allowed": [
        ("cli/test_read_only_tools.py::test_no_tool_makes_anything_in_an_empty_home", "SAMPLES", 1, 4),
        ("cli/test_read_only_tools.py::test_no_tool_makes_anything_in_an_empty_home", "EMPTY", 2, 4),
        ("cli/test_read_only_tools.py::test_no_tool_changes_anything_in_a_used_home", "SAMPLES", 1, 4),
    ],
    "nothing later than the clock is seen by any tool of any server": [
        (
            "servers/test_nothing_later.py::test_the_same_question_has_the_same_answer_before_and_after_later_deeds",
            "SEEDS",
            1,
            40,
        ),
    ],
    "limits for every account, minute by minute": [
        ("trading/test_advance.py::test_skipping_quiet_minutes_changes_nothing", "EXAMPLES", 250, 5000),
        ("trading/test_advance.py::test_two_parts_give_the_same_as_one", "EXAMPLES", 250, 5000),
        ("trading/test_advance.py::test_the_order_of_symbols_does_not_matter", "EXAMPLES", 250, 5000),
    ],
    "JSON holds no NaN, arguments are bounded, every id gets one answer": [
        ("protocol/test_stdio.py::test_fuzzed_lines_never_stop_the_server", "FUZZED_LINES", 300, 3000),
    ],
    "a day of 500 symbols, 1,000 resting orders and 10,000 alerts leaves memory and handles level and loses nothing": [
        ("operations/test_day.py::test_a_day_leaves_a_desk_as_it_was_and_loses_nothing", "SYMBOLS", 20, 500),
        ("operations/test_day.py::test_a_day_leaves_a_desk_as_it_was_and_loses_nothing", "ORDERS", 40, 1000),
        ("operations/test_day.py::test_a_day_leaves_a_desk_as_it_was_and_loses_nothing", "ALERTS", 60, 10_000),
        ("operations/test_day.py::test_a_day_leaves_a_desk_as_it_was_and_loses_nothing", "MINUTES", 60, 1440),
        ("operations/test_day.py::test_a_day_leaves_a_desk_as_it_was_and_loses_nothing", "HISTORY", 120, 3000),
        ("operations/test_day.py::test_a_day_leaves_a_desk_as_it_was_and_loses_nothing", "NEAR", 50, 2),
        ("operations/test_day.py::test_a_day_leaves_a_desk_as_it_was_and_loses_nothing", "EVERY", 10, 60),
        ("operations/test_day.py::test_a_day_leaves_a_desk_as_it_was_and_loses_nothing", "PATIENCE", 120, 10_800),
    ],
    "make up installs what the desk runs on; bench ends with its children; memory stays level": [
        ("cli/test_garbage.py::test_a_desk_with_resting_orders_on_postgresql_stays_level", "ORDERS", 50, 1000),
    ],
    "stopping in the middle of the first fetch is clean": [
        ("servers/test_hostile_homes.py::test_stopping_in_the_middle_of_the_first_fetch_is_clean", "STOPS", 4, 40),
    ],
    "webhooks arrive at least once, signed, in order and with one id, whatever the receiver does and through kill -9": [
        (
            "gateway/webhooks/test_kills.py::test_a_killed_sender_loses_nothing_and_keeps_ids_and_order",
            "KILLS",
            6,
            200,
        ),
    ],
}
"""For each campaign: the test, the constant in its module, its runs in the ordinary run and in the soak."""

STATED = re.compile(r"\b\d{1,3}(?:,\d{3})+\b")
"""A count in a requirement's own words, such as 10,000."""


@cache
def names_in(path: Path) -> set[str]:
    return {
        node.name
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }


@pytest.mark.parametrize(
    ("requirement", "tests"), [*MUST_HOLD.items(), *DEFECTS_SEEN_ELSEWHERE.items()], ids=lambda value: str(value)[:60]
)
def test_every_requirement_has_its_tests(requirement: str, tests: list[str]) -> None:
    assert tests, requirement
    for test in tests:
        file, _, name = test.partition("::")
        assert not name or name in names_in(ROOT / file), f"{requirement}: {test} is gone"
        assert (ROOT / file).exists(), f"{requirement}: {file} is gone"


def test_every_campaign_is_in_the_list_with_the_counts_that_it_runs() -> None:
    listed = {campaign for campaigns in COUNTS.values() for campaign in campaigns}
    declared = {campaign for path, text in CODE.items() if "runs(" in text for campaign in campaigns_in(path)}
    assert listed == declared


def test_every_campaign_is_named_by_its_requirement() -> None:
    for requirement, campaigns in COUNTS.items():
        for test, *_ in campaigns:
            assert {test, test.partition("::")[0]} & set(MUST_HOLD[requirement]), f"{requirement}: {test}"


def test_a_count_in_the_words_of_a_requirement_is_reached_in_the_soak() -> None:
    for requirement in MUST_HOLD:
        for stated in STATED.findall(requirement):
            assert sum(soak for *_, soak in COUNTS.get(requirement, [])) >= int(stated.replace(",", "")), requirement


def test_no_other_number_differs_between_the_ordinary_run_and_the_soak() -> None:
    for path, text in CODE.items():
        assert "OPENBELL_SOAK" not in text, f"{path}: only tests/counts.py reads it"
        for node in ast.walk(tree_of(path)) if "SOAK" in text else ():
            if isinstance(node, ast.IfExp) and "SOAK" in names_used(node.test):
                chosen = [each.value for each in (node.body, node.orelse) if isinstance(each, ast.Constant)]
                assert int not in map(type, chosen), f"{path}:{node.lineno}: use runs"
